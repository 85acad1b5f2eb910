"""What processes cost, by name; and the limits of Falsework's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from idle import CPU_LIMIT, Idle, Machine, as_data, table
from process_cost import Cost, Process, called, costs, processes


@pytest.mark.parametrize(
    ("line", "name", "is_ours"),
    [
        ("/usr/bin/python3 -m falsework.in_machine etcd-operator --listen=x", "etcd-operator", True),
        ("/usr/bin/python3 -I /usr/local/lib/falsework.pyz boot-server --port=8080", "boot-server", False),
        ("python -c import=falsework.machines.keeper;main() /machines/helper", "keeper", False),
        ("/usr/bin/kubelet --config=x", "kubelet", False),
        ("haproxy", "haproxy", False),
        ("", "unknown", False),
    ],
)
def test_a_process_has_the_name_of_its_entry_point(line: str, name: str, is_ours: bool) -> None:
    assert called([*line.split(" "), ""]) == (name, is_ours)


def test_processes_are_read_from_proc(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    text = "7 (a) name) S " + " ".join(map(str, range(4, 14))) + " 150 50 " + " ".join(map(str, range(16, 40)))
    (folder / "stat").write_text(text)
    (folder / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=x\0")
    (folder / "smaps_rollup").write_text("55d0-7ffe ---p 0 00:00 0 [rollup]\nRss:  2048 kB\nPss:  1024 kB\n")
    found = processes([7, 8], tmp_path)
    assert found == {(7, 22): Process("kubelet", False, 2.0, 2048 * 1024, 1024 * 1024)}


def process(cpu: float, resident: int = 10, name: str = "etcd-operator") -> Process:
    return Process(name, name == "etcd-operator", cpu, resident, resident // 2)


def test_those_of_one_name_are_added_up() -> None:
    before = {(1, 1): process(1.0), (2, 1): process(5.0), (3, 1): process(9.0), (4, 1): process(0.0, name="kubelet")}
    # The third has ended, and another has got its number.
    after = {
        (1, 1): process(1.5, 20),
        (2, 1): process(5.5, 30),
        (3, 2): process(0.0),
        (4, 1): process(3.0, name="kubelet"),
    }
    assert costs(before, after, 10.0) == [
        Cost("kubelet", False, 1, 30.0, 10, 5),
        Cost("etcd-operator", True, 2, 10.0, 30, 25),
    ]


def test_limits_are_of_our_own_pods() -> None:
    machines = [Machine("master-0", 12.0, 2**30)]
    theirs = Cost("kube-apiserver", False, 3, 30.0, 400_000_000, 900_000_000)
    ours = Cost("etcd-operator", True, 1, CPU_LIMIT, 70_000_000, 60_000_000)
    within = Idle(60.0, machines, [theirs, ours], 1.0)
    assert within.missed == []
    large = Cost("network-operator", True, 1, 0.1, 71_000_000, 60_000_000)
    beyond = Idle(60.0, machines, [theirs, ours, large], 1.0)
    assert beyond.missed == [
        "network-operator has 71 MB resident, of at most 70",
        "Falsework's pods take 5.1 % of a core, of at most 5",
    ]
    assert as_data(beyond)["missed"] == beyond.missed
    text = table(beyond)
    assert "MISSED: network-operator has 71 MB" in text
    assert "master-0" in text
