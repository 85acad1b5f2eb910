"""What a unit notes of itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from falsework.bootstrap.records import FAILURE, Records
from falsework.errors import FalseworkError

MOMENT = datetime(2030, 1, 1, 12, 30, 15, 250_000, tzinfo=UTC)
STAMP = {"timestamp": "2030-01-01T12:30:15.250Z"}


def records_in(path: Path) -> Records:
    return Records(path, lambda: MOMENT)


def entries(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_bytes())
    return found


def test_a_run_that_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "log" / "bootkube.json"
    records = records_in(path)
    records.service_start()
    with records.stage("etcd-bootstrap"):
        assert entries(path)[-1] == {**STAMP, "phase": "stage start", "stage": "etcd-bootstrap"}
    records.service_end()
    assert entries(path) == [
        {**STAMP, "phase": "service start"},
        {**STAMP, "phase": "stage start", "stage": "etcd-bootstrap"},
        {**STAMP, "phase": "stage end", "stage": "etcd-bootstrap", "result": "success"},
        {**STAMP, "phase": "service end", "result": "success"},
    ]


def test_a_failure_says_where_and_why_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "bootkube.json"
    failed = records_in(path)
    failed.service_start()
    with pytest.raises(FalseworkError) as raised, failed.stage("wait-for-etcd"):
        raise FalseworkError("etcd is not healthy", cause="connection refused")
    failed.service_end(FAILURE, raised.value)
    again = records_in(path)
    again.service_start()
    found = entries(path)
    assert [entry["phase"] for entry in found].count("service start") == 2
    for entry in (found[2], found[3]):
        assert entry["result"] == "failure"
        assert entry["errorMessage"] == "etcd is not healthy\n  cause: connection refused"
        assert entry["errorLine"].startswith("test_bootstrap_records.py:")


@pytest.mark.parametrize("content", [b"", b"[{", b"{}", b'["text"]'])
def test_records_nobody_can_read_are_set_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bootkube.json"
    path.write_bytes(content)
    records_in(path).service_start()
    assert entries(path) == [{**STAMP, "phase": "service start"}]
    assert (tmp_path / "bootkube.json.unreadable").read_bytes() == content
