"""What a member does before it starts, by OpenShift's table; and what the operator reads out of pods."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falsework.errors import FalseworkError
from falsework.etcd import wal
from falsework.etcd.members import Member
from falsework.etcd.settings import peer_url
from falsework.etcd.wal import Identity
from falsework.operators.etcd import pod
from falsework.operators.etcd.decision import DESTROYED, Action, Listing, decide
from falsework.operators.etcd.discovery import archive
from falsework.operators.etcd.masters import inventory_in, masters_in
from falsework.operators.etcd.member import main
from falsework.operators.etcd.member_config import Certificates, MemberConfig
from falsework.operators.etcd.turn import Turn

MINE = peer_url("10.0.0.1")
OTHER = Member(2, "other", (peer_url("10.0.0.2"),))
UNNAMED = Member(3, "", (peer_url("10.0.0.3"),), is_learner=True)
CLUSTER = 77
THIS, ANOTHER = Identity(1, CLUSTER), Identity(1, 88)


def decided(mine: Member | None, data: Identity | None) -> Action:
    members = (OTHER, *((mine,) if mine else ()))
    return decide("node", MINE, Listing(members, CLUSTER), data, patient=False).action


@pytest.mark.parametrize("data", [None, THIS, ANOTHER])
def test_one_that_is_not_listed_waits(data: Identity | None) -> None:
    assert decided(None, data) is Action.WAIT


@pytest.mark.parametrize("data", [None, THIS, ANOTHER])
def test_one_that_was_added_joins_whatever_an_earlier_life_left(data: Identity | None) -> None:
    assert decided(Member(1, "", (MINE,), is_learner=True), data) is Action.JOIN


def test_one_that_has_started_before_starts_with_its_data_alone() -> None:
    started = Member(1, "node", (MINE,))
    assert decided(started, THIS) is Action.START
    for data in (None, ANOTHER):
        assert decided(started, data) is Action.GIVE_UP
        assert DESTROYED in decide("node", MINE, Listing((started,), CLUSTER), data, patient=False).reason


def test_when_nobody_answers_data_decides_but_not_at_once() -> None:
    assert decide("node", MINE, None, THIS, patient=True).action is Action.WAIT
    assert decide("node", MINE, None, THIS, patient=False).action is Action.START
    assert decide("node", MINE, None, None, patient=False).action is Action.WAIT


def test_all_members_are_named_those_without_a_name_too() -> None:
    mine = Member(1, "", (MINE,), is_learner=True)
    found = decide("node", MINE, Listing((mine, OTHER, UNNAMED), CLUSTER), None, patient=True)
    assert found.initial_cluster == f"node={MINE},other={OTHER.peer_urls[0]},3={UNNAMED.peer_urls[0]}"


def test_a_member_never_begins_a_cluster() -> None:
    certificates = Certificates("ca.crt", "/certs", "node")
    config = MemberConfig("node", "10.0.0.1", "/data", certificates, "Slower", 3, 1 << 30)
    found = json.loads(config.to_json("node=x"))
    assert found["initial-cluster-state"] == "existing"
    assert (found["heartbeat-interval"], found["election-timeout"]) == (500, 2500)
    assert found["peer-transport-security"]["cert-file"] == "/certs/etcd-peer-node.crt"
    assert found["client-transport-security"]["client-cert-auth"] is True


def test_an_earlier_life_is_kept(tmp_path: Path) -> None:
    assert archive(tmp_path) is None
    (tmp_path / "member/snap").mkdir(parents=True)
    archived = archive(tmp_path)
    assert archived is not None
    assert (archived / "snap").is_dir()
    assert not (tmp_path / "member").exists()


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, b"\x08\x00\x00\x00\x00\x00\x00\x00\x0b\x0b"])
def test_what_is_no_log_is_nobodys(tmp_path: Path, content: bytes) -> None:
    assert wal.identity(tmp_path) is None
    folder = tmp_path / "member/wal"
    folder.mkdir(parents=True)
    (folder / "0000000000000000-0000000000000000.wal").write_bytes(content)
    assert wal.identity(tmp_path) is None


def named(member: Member, name: str) -> Member:
    return replace(member, name=name)


def test_who_was_added_together_starts_one_after_the_other() -> None:
    now = [0.0]
    said: list[str] = []
    first, second, third = (Member(9 - number, "", (peer_url(f"10.0.0.{number}"),)) for number in (1, 2, 3))
    turns = [Turn(each.peer_urls[0], said.append, lambda: now[0]) for each in (first, second, third)]

    def come(*members: Member) -> list[bool]:
        return [turn.has_come((OTHER, *members)) for turn in turns]

    assert come(third, second, first) == [True, False, False]
    now[0] = 5.0
    assert come(third, second, named(first, "a")) == [True, True, False]
    # Its patience is with the one whose turn it is.
    now[0] = 10.0
    assert come(third, second, named(first, "a")) == [True, True, False]
    assert come(third, named(second, "b"), named(first, "a")) == [True, True, True]
    assert not [line for line in said if line.startswith("go on")]


def test_one_that_does_not_start_holds_the_next_up_for_seconds_only() -> None:
    now = [0.0]
    said: list[str] = []
    first, second, third = (Member(number, "", (peer_url(f"10.0.0.{number}"),)) for number in (1, 2, 3))
    turn = Turn(third.peer_urls[0], said.append, lambda: now[0])
    for moment, come in ((0.0, False), (5.9, False), (6.0, False), (11.9, False), (12.0, True), (12.1, True)):
        now[0] = moment
        assert turn.has_come((first, second, third)) is come, moment
    assert [line for line in said if line.startswith("go on")] == [
        f"go on: {first.title} has not started in 6 s",
        f"go on: {second.title} has not started in 6 s",
    ]


# What the operator reads


def node(name: str, address: str, **metadata: Any) -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    return {"metadata": {"name": name, **metadata}, "status": {"addresses": addresses}}


def etcd_pod(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"etcd-{name}"},
        "status": {"containerStatuses": [{"name": pod.CONTAINER, "ready": False, **status}]},
    }


def test_who_waits_and_whose_data_is_gone() -> None:
    words = {"terminated": {"exitCode": 1, "message": f"member 1 has started before, but its {DESTROYED}"}}
    found = masters_in(
        [
            node("a", "10.0.0.1"),
            node("b", "10.0.0.2"),
            node("c", "10.0.0.3"),
            node("d", "10.0.0.4"),
            node("e", "10.0.0.5", deletionTimestamp="2026-01-01T00:00:00Z"),
        ],
        [
            etcd_pod("a", state={"running": {}}, lastState=words),
            etcd_pod("b", state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=words),
            etcd_pod("c", state={"terminated": {"exitCode": 0}}, lastState=words),
            etcd_pod("d", state={"running": {"startedAt": "now"}}, ready=True),
        ],
    )
    assert set(found.addresses) == {"a", "b", "c", "d"}
    assert found.waiting == {"a"}
    assert found.destroyed == {"b"}


def test_the_inventory_names_all_who_may_be_members() -> None:
    machines = [
        {"name": "b", "role": "bootstrap", "address": "10.0.0.9"},
        {"name": "m", "role": "master", "address": "10.0.0.1"},
        {"name": "w", "role": "worker", "address": "10.0.0.5"},
    ]
    found = inventory_in({"data": {"inventory.json": json.dumps(machines)}})
    assert (found.masters, found.bootstrap) == (("10.0.0.1",), "10.0.0.9")
    broken_ones: list[dict[str, Any] | None]
    broken_ones = [None, {"data": {}}, {"data": {"inventory.json": "{}x"}}, {"data": {"inventory.json": "[1]"}}]
    for broken in broken_ones:
        with pytest.raises(FalseworkError, match="machine-inventory"):
            inventory_in(broken)


def test_the_pod_is_the_same_on_every_node() -> None:
    found = pod.etcd_pod(pod.Facts("etcd:1", "falsework:1", ("10.0.0.1", "10.0.0.9"), "Slower", 3, 8 << 30))
    spec = found["spec"]
    (container,) = spec["containers"]
    assert (container["name"], container["image"]) == ("etcd", "falsework:1")
    assert "initContainers" not in spec
    assert found["metadata"]["labels"].items() >= {"app": "etcd", "k8s-app": "etcd", "etcd": "true"}.items()
    environment = {entry["name"]: entry for entry in container["env"]}
    assert environment["ETCDCTL_ENDPOINTS"]["value"] == "https://$(NODE_IP):2379"
    # A variable must come before those that have it in their values.
    assert [*environment].index("NODE_IP") < [*environment].index("ETCDCTL_ENDPOINTS")
    assert container["readinessProbe"]["periodSeconds"] == 1
    assert "--speed=Slower" in container["command"]
    assert "REVISION" in json.dumps(spec["volumes"])


def test_etcds_programs_come_from_its_own_image() -> None:
    spec = pod.etcd_pod(pod.Facts("etcd:1", "falsework:1", (), "", 3, 8 << 30))["spec"]
    (container,) = spec["containers"]
    assert {"name": "etcd", "image": {"reference": "etcd:1", "pullPolicy": "IfNotPresent"}} in spec["volumes"]
    assert {"name": "etcd", "mountPath": "/opt/etcd", "readOnly": True} in container["volumeMounts"]
    assert "--etcd=/opt/etcd/usr/bin/etcd" in container["command"]
    # People say `crictl exec … etcdctl`, and Python has to be found as well.
    (path,) = (entry["value"].split(":") for entry in container["env"] if entry["name"] == "PATH")
    assert path[0] == "/opt/etcd/usr/bin"
    assert "/usr/bin" in path


def test_the_program_takes_what_the_pod_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = pod.etcd_pod(pod.Facts("etcd:1", "falsework:1", ("10.0.0.1", "10.0.0.9"), "Slower", 3, 8 << 30))
    words = found["spec"]["containers"][0]["command"][4:]
    told = [word.replace("$(NODE_NAME)", "master-0").replace("$(NODE_IP)", "10.0.0.1") for word in words]
    assert main(told) == 1
    assert "server-ca-bundle.crt cannot be read" in capsys.readouterr().err
