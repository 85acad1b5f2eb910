"""The event stream: bounded, whole lines, no secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falsework.stages import events
from falsework.stages.events import EventLog, Kind, read_events, without_secrets


def test_a_line_cut_off_by_a_kill_spoils_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events"
    EventLog(path).add(Kind.SENTENCE, text="one")
    with path.open("ab") as file:
        file.write(b'{"time": 1, "kind": "sentence", "te')
    assert [event["text"] for event in read_events(path)] == ["one"]
    EventLog(path).add(Kind.SENTENCE, text="two")
    assert [event["text"] for event in read_events(path)] == ["one", "two"]


def test_there_is_an_end_to_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_BYTES", 1000)
    log = EventLog(tmp_path / "events")
    for number in range(100):
        log.add(Kind.SENTENCE, text=f"number {number}")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2200
    texts = [event["text"] for event in read_events(tmp_path / "events")]
    assert texts[-1] == "number 99"
    assert texts == [f"number {number}" for number in range(100 - len(texts), 100)], "the newest, without a gap"


def test_nobody_else_may_read_it_and_listeners_hear_it(tmp_path: Path) -> None:
    heard: list[events.Event] = []
    EventLog(tmp_path / "events", heard.append).add(Kind.SENTENCE, text="one")
    assert (tmp_path / "events").stat().st_mode & 0o777 == 0o600
    assert heard == list(read_events(tmp_path / "events"))


@pytest.mark.parametrize(
    "secret",
    [
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIB",
        json.dumps({"auths": {"registry": {"auth": "MHcCAQEEIB"}}}),
        "password=MHcCAQEEIB",
        "Authorization token: MHcCAQEEIB",
    ],
)
def test_secrets_a_program_quotes_do_not_get_in(tmp_path: Path, secret: str) -> None:
    EventLog(tmp_path / "events").add(Kind.STAGE, state="failed", error={"what": f"it said {secret} and ended"})
    assert "MHcCAQEEIB" not in (tmp_path / "events").read_text()


def test_join_tokens_are_secrets_too_and_texts_have_an_end() -> None:
    assert without_secrets("use abcdef.0123456789abcdef now") == "use … now"
    assert len(without_secrets("x" * 100_000)) < 5000
    assert without_secrets("192.168.126.2 asked for machines/master-0.ign") == (
        "192.168.126.2 asked for machines/master-0.ign"
    )
