"""What is remembered and told: the queue, the budget of events, the file of decisions, who fetched its config."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from falsework.csr import decisions
from falsework.csr.events import event
from falsework.csr.knowledge import Fetched, boots_in, machines_in, machines_of, reason_against
from falsework.csr.request import Request
from falsework.errors import FalseworkError
from falsework.kube.event_budget import Budget
from falsework.site.load import default_site
from falsework.work_queue import WorkQueue


def test_a_name_is_in_the_queue_once() -> None:
    queue = WorkQueue()
    for name in ("a", "b", "a"):
        queue.add(name)
    assert [queue.take(0), queue.take(0), queue.take(0)] == ["a", "b", None]
    queue.add("later", 30)
    assert queue.take(0) is None
    began = time.monotonic()
    queue.add("later", 0.02)
    assert queue.take(5) == "later"
    assert time.monotonic() - began > 0.01
    assert queue.take(0) is None
    assert len(queue) == 0


def test_nobody_takes_all_of_the_budget() -> None:
    now = [0.0]
    budget = Budget(lambda: now[0])
    assert sum(budget.take("loud") for _ in range(100)) == 10
    assert budget.take("quiet")
    now[0] += 10
    assert [budget.take("loud"), budget.take("loud")] == [True, False]
    assert sum(budget.take(f"one of {number}") for number in range(5000)) <= 120
    assert len(budget._own) <= Budget.MOST_NAMES


def test_an_event_that_says_the_same_is_the_same() -> None:
    request = Request.of({"metadata": {"name": "csr-1", "uid": "u"}})
    first, second, other = (event(request, "R", text, "us") for text in ("why", "why", "else"))
    assert first["metadata"] == second["metadata"] != other["metadata"]
    assert first["involvedObject"]["uid"] == "u"


def noted(name: str, message: str = "m") -> decisions.Noted:
    return decisions.Noted(name, f"uid-{name}", "", "client", "m", "r", "Pending", "wait", "R", message)


def test_decisions_are_written_when_they_are_news(tmp_path: Path) -> None:
    path = tmp_path / "decisions.json"
    book = decisions.Decisions(path)
    assert book.note(noted("a"))
    assert not book.note(noted("a"))
    book.leave_out_event()
    book.write()
    assert json.loads(path.read_text())["eventsLeftOut"] == 1
    assert decisions.read(path.read_bytes()) == {"uid-a": noted("a")}
    path.unlink()
    book.write()
    assert not path.exists()
    assert book.note(noted("a", "other"))
    book.forget("a")
    book.forget("never seen")
    book.write()
    assert decisions.read(path.read_bytes()) == {}


def test_what_could_not_be_written_is_still_news(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    book = decisions.Decisions(tmp_path / "file" / "decisions.json")
    with pytest.raises(OSError, match="file"):
        book.write()
    with pytest.raises(OSError, match="file"):
        book.write()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decisions, "MOST", 3)
    book = decisions.Decisions(tmp_path / "d")
    for number in range(10):
        book.note(noted(str(number)))
    book.write()
    assert set(decisions.read((tmp_path / "d").read_bytes())) == {"uid-7", "uid-8", "uid-9"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"requests": [1]}', b'{"requests": [{"uid": "x"}]}', b"\xff"])
def test_broken_decisions_say_nothing(content: bytes) -> None:
    assert decisions.read(content) == {}


def test_who_fetched_its_config(tmp_path: Path) -> None:
    path = tmp_path / "served.json"
    fetched = Fetched(path, "now")
    assert not fetched.refresh()
    assert "has not fetched its config" in str(fetched.reason_against("a"))
    path.write_text(json.dumps({"a": {"time": 1, "boot": "now"}, "b": {"time": 1, "boot": "before"}}))
    assert fetched.refresh()
    assert not fetched.refresh()
    assert fetched.reason_against("a") is None
    assert str(fetched.reason_against("b")).endswith("only before that")
    path.unlink()
    assert fetched.refresh()
    assert fetched.reason_against("a") is not None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b'{"a": 1}', b'{"a": {}}', b'{"a": {"boot": ""}}', b"[" * 9999]
)
def test_a_broken_note_is_none(content: bytes) -> None:
    assert boots_in(content) == {}
    assert reason_against("a", boots_in(content), "") is not None


def test_a_boot_is_the_same_with_and_without_dashes() -> None:
    assert reason_against("a", {"a": "0a1b2c3d"}, "0a1b-2c3d\n") is None
    assert reason_against("a", {"a": "0a1b2c3e"}, "0a1b-2c3d\n") is not None


def test_the_inventory_is_the_sites() -> None:
    site = default_site()
    inventory = [
        {"name": site.fqdn(machine), "role": str(machine.role), "mac": machine.mac, "address": str(machine.address)}
        for machine in site.machines
    ]
    assert machines_in(json.dumps(inventory).encode()) == machines_of(site)
    for broken in (b"", b"{}x", b'[{"name": "a"}]', b"[1]", b'[{"name": "a", "role": "king", "address": "1.2.3.4"}]'):
        with pytest.raises(FalseworkError):
            machines_in(broken)
