"""What a console shows of Ignition's log, and when Ignition is started again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from falsework.errors import FalseworkError
from falsework.machines.firmware import ignition
from falsework.machines.firmware.boot import _platform, resolv_conf
from falsework.machines.firmware.dhcp_packet import Lease
from falsework.machines.firmware.ignition_log import IgnitionLog, without_secrets
from falsework.machines.firmware.pxelinux import BootEntry
from falsework.process import CommandError, Finished

URL = "https://api-int.lab.falsework.test:22623/config/master"


class Console:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.doing: list[str] = []
        self.log = IgnitionLog(self.said.append, self.doing.append)

    def take(self, *lines: str) -> None:
        for line in lines:
            self.log.take(line)


@pytest.fixture
def console() -> Console:
    return Console()


def refused(attempt: int) -> tuple[str, str]:
    return (
        f"INFO     : GET {URL}: attempt #{attempt}",
        f'INFO     : GET error: Get "{URL}": dial tcp 192.168.126.2:22623: connect: connection refused',
    )


def test_a_wait_is_counted_over_all_runs_and_said_rarely(console: Console) -> None:
    for _ in range(3):
        console.log.start()
        for attempt in range(1, 5):
            console.take(*refused(attempt))
            assert console.log.failed_attempt
            assert console.log.attempt == attempt
    assert console.doing[-1] == f"GET {URL}: connection refused, tried 12 times"
    counts = [line.rpartition("tried ")[2] for line in console.said[1:]]
    assert counts == ["1 time", "2 times", "4 times", "8 times"]
    console.take(f"INFO     : GET {URL}: attempt #1", "INFO     : GET result: OK")
    assert console.said[-1] == f"Ignition: GET {URL}: OK, after 13 tries"
    assert not console.log.failed_attempt


def test_a_new_reason_is_said_at_once(console: Console) -> None:
    console.take(*refused(1), *refused(2), *refused(3))
    console.take(f"INFO     : GET {URL}: attempt #4", f'INFO     : GET error: Get "{URL}": EOF')
    console.take(f"INFO     : GET {URL}: attempt #5", f'INFO     : GET error: Get "{URL}": x509: unknown authority')
    assert console.said[-1].endswith("x509: unknown authority, tried 5 times")


def test_a_server_that_is_not_ready_is_waited_for(console: Console) -> None:
    console.take(f"INFO     : GET {URL}: attempt #1", "INFO     : GET result: Service Unavailable")
    assert console.log.failed_attempt
    assert console.log.refused == ""
    assert console.doing[-1] == f"GET {URL}: Service Unavailable, tried 1 time"


def test_a_refusal_is_final(console: Console) -> None:
    console.take(f"INFO     : GET {URL}: attempt #1", "INFO     : GET result: Forbidden")
    assert not console.log.failed_attempt
    assert console.log.refused == f"{URL} answers: Forbidden"


def test_noise_is_dropped_and_nothing_is_said_twice(console: Console) -> None:
    console.take(
        "INFO     : Ignition 2.26.0",
        "INFO     : Stage: files",
        "DEBUG    : parsing config with SHA512: 1234",
        "INFO     : Ignition 2.26.0",
        'INFO     : files: createFilesystemsFiles: createFiles: op(3): [started]  writing file "/sysroot/etc/x"',
        'INFO     : files: createFilesystemsFiles: createFiles: op(3): [finished] writing file "/sysroot/etc/x"',
        "no log line at all",
        "",
    )
    assert console.said == [
        "Ignition: 2.26.0",
        'Ignition: files: createFilesystemsFiles: createFiles: writing file "/sysroot/etc/x"',
    ]


def test_complaints_are_kept(console: Console) -> None:
    console.take("WARNING  : old", "CRITICAL : Ignition failed: config is not valid")
    assert console.log.complaints == ["old", "Ignition failed: config is not valid"]
    console.log.start()
    assert console.log.complaints == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('source "data:text/plain;base64,c2VjcmV0"', 'source "data:…"'),
        ('Cmd: "usermod" "--password" "$6$secret" "core"', 'Cmd: "usermod" "--password" "…" "core"'),
        ("GET http://user:secret@host/x: attempt #1", "GET http://…@host/x: attempt #1"),
        ("GET http://host/x?a=b&token=secret&c=d", "GET http://host/x?a=b&token=…&c=d"),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


class Fetch:
    """Ignition's fetch stage with a clock of its own: each run prints its lines, a second apart, and ends as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *runs: tuple[tuple[str, ...], bool]) -> None:
        self._runs = list(runs)
        self.now = 0.0
        self.console = Console()
        monkeypatch.setattr(ignition, "_stage", self._stage)
        monkeypatch.setattr(ignition, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep))

    def run(self) -> None:
        ignition._fetch(Path("/view"), "metal", self.console.log)
        assert self._runs == []

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _stage(self, stage: str, view: Path, platform: str, each_line: Callable[[str], None]) -> None:
        lines, ends_well = self._runs.pop(0)
        for line in lines:
            self.now += 1
            each_line(line)
        if not ends_well:
            raise CommandError("ignition", Finished((), 1, "", "Full config: secret"))


GOOD = ((f"INFO     : GET {URL}: attempt #1", "INFO     : GET result: OK"), True)


def attempts(count: int) -> tuple[str, ...]:
    return tuple(line for attempt in range(1, count + 1) for line in refused(attempt))


def test_an_ignition_that_would_wait_long_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    never = "INFO     : this is never read"
    fetch = Fetch(monkeypatch, ((*attempts(4), never), True), ((*attempts(4), never), True), GOOD)
    fetch.run()
    assert fetch.console.said[-1] == f"Ignition: GET {URL}: OK, after 9 tries"
    assert not any("never" in line for line in fetch.console.said)


def test_after_a_minute_ignition_is_left_to_its_own_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    run = (tuple("INFO     : x" for _ in range(61)) + attempts(20) + GOOD[0], True)
    Fetch(monkeypatch, run).run()


def test_an_ignition_that_gave_up_waiting_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gave_up = "CRITICAL : Ignition failed: unable to fetch resource in time"
    Fetch(monkeypatch, ((gave_up,), False), GOOD).run()


def test_an_ignition_that_failed_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ("CRITICAL : failed to acquire config: no JSON", "CRITICAL : Ignition failed: no JSON")
    with pytest.raises(FalseworkError) as caught:
        Fetch(monkeypatch, (reasons, False), GOOD).run()
    assert caught.value.what == "Ignition failed in its fetch stage"
    assert caught.value.cause == "failed to acquire config: no JSON; no JSON"


def lease(search: tuple[str, ...], name_servers: tuple[str, ...]) -> Lease:
    return Lease("10.0.0.2", 24, None, name_servers, search, "", "10.0.0.1", "10.0.0.1", "pxelinux.0", 60)


def test_resolv_conf() -> None:
    given = lease(("a.test", "b.test"), ("10.0.0.1", "10.0.0.3"))
    assert resolv_conf(given) == "search a.test b.test\nnameserver 10.0.0.1\nnameserver 10.0.0.3\n"
    assert resolv_conf(lease((), ())) == ""


@pytest.mark.parametrize("word", ["ignition.firstboot", "ignition.firstboot=1"])
def test_the_platform_is_an_argument(word: str) -> None:
    assert _platform(BootEntry("k", "i", (word, "ignition.platform.id=metal"))) == "metal"


@pytest.mark.parametrize(
    "words", [(), ("ignition.platform.id=metal",), ("ignition.firstboot",), ("ignition.firstboot=0",)]
)
def test_a_boot_without_ignition_is_no_first_boot(words: tuple[str, ...]) -> None:
    with pytest.raises(FalseworkError, match="does not ask for Ignition"):
        _platform(BootEntry("k", "i", words))
