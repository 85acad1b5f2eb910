"""The ledger, from lines real daemons wrote (tests/unit/helper/journal), and from garbage."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsework.cli import ledger as command
from falsework.cli import main
from falsework.errors import FalseworkError
from falsework.helper import ledger
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER_UNIT
from falsework.helper.ledger_entry import LedgerEntry, Service, folded
from falsework.site.load import default_site

SITE = default_site()
JOURNAL = Path(__file__).parent / "journal"
UNITS = {
    "dnsmasq": ledger.DNSMASQ_UNIT,
    "boot-server": BOOT_SERVER_UNIT,
    "haproxy": ledger.BALANCER_UNIT,
    "registry": ledger.REGISTRY_UNIT,
    "nfs-ganesha": ledger.NFS_UNIT,
}
START = 1_900_000_000


def record(unit: str, message: object, milliseconds: int = 0) -> str:
    time = str(START * 1_000_000 + milliseconds * 1000)
    return json.dumps({"__REALTIME_TIMESTAMP": time, "_SYSTEMD_UNIT": unit, "MESSAGE": message})


def recorded(name: str) -> list[str]:
    lines = (JOURNAL / f"{name}.log").read_text().splitlines()
    return [record(UNITS[name], line, index) for index, line in enumerate(lines)]


def sentences(name: str) -> list[str]:
    return [entry.sentence() for entry in ledger.read(recorded(name), SITE)]


def read_messages(unit: str, *messages: str) -> list[LedgerEntry]:
    return list(ledger.read([record(unit, message) for message in messages], SITE))


MASTER = "master-1 (192.168.126.102)"
MAC = "master-1 (52:54:00:4e:84:8c)"


@pytest.mark.parametrize(
    "sentence",
    [
        f"{MAC} asked for DHCPDISCOVER, got 192.168.126.102, boot file pxelinux.0",
        f"{MAC} asked for DHCPDISCOVER, got 192.168.126.102, boot file ipxe.efi",
        f"{MAC} asked for DHCPREQUEST 192.168.126.102, got 192.168.126.102, boot file pxelinux.0",
        f"{MAC} asked for DHCPREQUEST 192.168.126.200, got nothing, because it may not have that: wrong address",
        "02:00:00:00:00:99 asked for DHCPDISCOVER, got nothing, because no machine of the site has this MAC",
        f"{MASTER} asked for pxelinux.cfg/01-52-54-00-4e-84-8c, got it",
        f"{MASTER} asked for pxelinux.cfg/default, got nothing, because there is no such file",
        f"{MASTER} asked for pxelinux.0, got nothing, because it said error 0 TFTP Aborted",
        "somebody asked for ../../../etc/passwd, got nothing, because permission denied",
        f"{MASTER} asked for A api.lab.falsework.test, got 192.168.126.2",
        f"{MASTER} asked for PTR 101.126.168.192.in-addr.arpa, got master-0.lab.falsework.test",
        f"{MASTER} asked for SRV _etcd-server-ssl._tcp.lab.falsework.test, got 3 × <SRV>",
        f"{MASTER} asked for A nobody.lab.falsework.test, got nothing, because there is no such name",
        f"{MASTER} asked for AAAA api.lab.falsework.test, got nothing, because the name has no record of this kind",
        f"{MASTER} asked for A www.example.com, got nothing, because 192.168.126.77 was asked and has not answered",
    ],
)
def test_dnsmasq(sentence: str) -> None:
    assert sentence in sentences("dnsmasq")


def test_every_question_to_dnsmasq_is_one_entry() -> None:
    lines = (JOURNAL / "dnsmasq.log").read_text().splitlines()
    found = list(ledger.read(recorded("dnsmasq"), SITE))
    for service, mark in ((Service.DNS, " query["), (Service.DHCP, "DHCPDISCOVER("), (Service.DHCP, "DHCPREQUEST(")):
        kind = mark.strip(" [(") if service is Service.DHCP else ""
        asked = [entry for entry in found if entry.service is service and entry.asked.startswith(kind)]
        assert len(asked) == sum(mark in line for line in lines) > 0


@pytest.mark.parametrize(
    "sentence",
    [
        f"{MASTER} asked for api, got bootstrap, 1295 bytes",
        f"{MASTER} asked for api, got nothing, because no server is ready",
        "10.9.9.9 asked for machine-config-server, got nothing, because a rule refuses it",
        "somebody asked for a server for api, got nothing, because no server is ready",
        "bootstrap (192.168.126.100) asked for its place in api, got up, because Layer7 check passed, code: 200",
        "bootstrap (192.168.126.100) asked for its place in api, got drain",
        f"{MASTER} asked for its place in api, got maintenance",
        f"{MASTER} asked for its place in api, got up",
        "master-0 (192.168.126.101) asked for its place in api, got down, because Layer4 timeout",
        "master-0 (192.168.126.101) asked for its place in api, got down, because "
        'Layer7 wrong status, code: 503, info: "Service Unavailable"',
    ],
)
def test_haproxy(sentence: str) -> None:
    assert sentence in sentences("haproxy")


def test_haproxy_says_things_twice_and_is_read_once() -> None:
    lines = [line for line in (JOURNAL / "haproxy.log").read_text().splitlines() if not line.startswith("[")]
    assert len(sentences("haproxy")) == len(lines)


@pytest.mark.parametrize(
    "sentence",
    [
        f"{MASTER} asked for GET /v2/, got 200, 2 bytes",
        f"{MASTER} asked for GET /v2/pause/manifests/3.10, got nothing, because "
        "404: manifest unknown: unknown tag=3.10",
        f"{MASTER} asked for POST /v2/pause/blobs/uploads/, got nothing, because 405",
    ],
)
def test_registry(sentence: str) -> None:
    assert sentences("registry").count(sentence) == 1


def test_nfs() -> None:
    assert sentences("nfs-ganesha") == [
        "helper (127.0.0.1) asked for /var/nfs/share/, got it",
        "helper (127.0.0.1) asked for /var/nfs/closed/, got nothing, because "
        "export /var/nfs/closed does not allow access",
        "helper (127.0.0.1) asked for /nowhere/, got nothing, because export / does not support NFS v3",
        "helper (127.0.0.1) asked for /closed, got nothing, because it is not one of the share's clients",
    ]


def test_boot_server() -> None:
    assert sentences("boot-server") == [
        "worker-0 (192.168.126.111) asked for GET /falsework/rootfs.img, got 200, 524288 bytes",
        "master-0 (192.168.126.101) asked for GET /ignition/machines/master-1.ign, got nothing, because 403: "
        "that is the config of master-1; master-0 gets machines/master-0.ign alone",
        "192.168.126.77 asked for GET /ignition/bootstrap.ign, got nothing, because 403: the address belongs to no "
        "machine of the site",
        "worker-0 (192.168.126.111) asked for GET /falsework/rootfs.img, got 200, 69313 bytes, because the connection "
        "broke: Connection reset by peer",
    ]


def test_an_answer_is_held_back_until_it_is_complete_but_not_for_ever() -> None:
    query = "7 192.168.126.101/5 query[A] api.lab.falsework.test from 192.168.126.101"
    reply = "7 192.168.126.101/5 config api.lab.falsework.test is 192.168.126.2"
    lines = [record(ledger.DNSMASQ_UNIT, query), record(ledger.DNSMASQ_UNIT, reply), "", "marker"]
    seen: list[str] = []

    def source() -> Iterable[str]:
        for line in lines:
            if line == "marker":
                assert seen == ["A api.lab.falsework.test"]
            yield line

    for entry in ledger.read(source(), SITE):
        seen.append(entry.asked)  # noqa: PERF401 - what was seen when is the point
    assert len(seen) == 1


def test_a_question_nobody_answers_is_told_after_a_while() -> None:
    lines = [
        record(ledger.DNSMASQ_UNIT, "7 10.0.0.1/5 query[A] a.b from 10.0.0.1"),
        record(ledger.DNSMASQ_UNIT, "8 10.0.0.1/6 query[A] c.d from 10.0.0.1", 11_000),
        record(ledger.DNSMASQ_UNIT, "8 10.0.0.1/6 config c.d is 1.2.3.4", 11_000),
    ]
    first, second = ledger.read(lines, SITE)
    assert (first.asked, first.got, first.because) == ("A a.b", "", "no answer was sent")
    assert (second.asked, second.got, second.because) == ("A c.d", "1.2.3.4", "")


def test_messages_that_came_by_syslog_or_with_a_time() -> None:
    text = "sent /var/lib/tftpboot/pxelinux.0 to 192.168.126.101"
    for prefix in ("", "dnsmasq-tftp: ", "dnsmasq-tftp[12]: ", "Nov  5 23:18:45 dnsmasq-tftp[12]: "):
        (entry,) = read_messages(ledger.DNSMASQ_UNIT, prefix + text)
        assert (entry.machine, entry.asked, entry.got) == ("master-0", "pxelinux.0", "it")


def test_bytes_that_are_no_text() -> None:
    line = record(ledger.DNSMASQ_UNIT, list(b"sent /var/lib/tftpboot/x\xff\x1b[2J to 192.168.126.101"))
    (entry,) = ledger.read([line], SITE)
    assert entry.asked == "x\ufffd?[2J"


def test_what_strangers_send_is_short_and_harmless() -> None:
    line = {
        "service": "http",
        "client": "10.0.0.1",
        "asked": "GET /\x1b[31m\ud800" + "x" * 999,
        "status": 404,
        "bytes": 0,
    }
    (entry,) = read_messages(BOOT_SERVER_UNIT, json.dumps(line))
    assert entry.asked.isprintable()
    assert len(entry.asked) == 300
    assert entry.machine is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
http_lines = st.fixed_dictionaries(
    {
        "service": st.just("http"),
        "client": json_values,
        "asked": json_values,
        "status": json_values,
        "bytes": json_values,
    }
).map(json.dumps)
RECORDED = [line for path in sorted(JOURNAL.glob("*.log")) for line in path.read_text().splitlines()]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(UNITS.values())), st.lists(st.text() | http_lines | json_values, max_size=5))
def test_no_message_is_too_much(unit: str, messages: list[object]) -> None:
    for entry in ledger.read([record(unit, message) for message in messages], SITE):
        entry.sentence().encode()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_damaged_line_is_too_much(data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(UNITS.values())))
    messages = []
    for line in data.draw(st.lists(st.sampled_from(RECORDED), min_size=1, max_size=6)):
        start, end = sorted((data.draw(st.integers(0, len(line))), data.draw(st.integers(0, len(line)))))
        messages.append(line[:start] + data.draw(st.text(max_size=5)) + line[end:])
    for entry in ledger.read([record(unit, message) for message in messages], SITE):
        entry.sentence().encode()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text() | json_values.map(json.dumps), max_size=5))
def test_no_line_of_a_journal_is_too_much(lines: list[str]) -> None:
    assert list(ledger.read([*lines, "[" * 100_000, '{"__REALTIME_TIMESTAMP": ' + "9" * 9999 + "}"], SITE)) == []


# What is shown


def entry(time: float, got: str = "", asked: str = "api") -> LedgerEntry:
    return LedgerEntry(
        time, Service.BALANCER, "master-0", "192.168.126.101", asked, got, "" if got else "nobody is ready"
    )


def test_repeats_are_folded_while_the_answer_is_the_same() -> None:
    entries = [
        *(entry(float(second)) for second in range(41)),
        entry(41.0, "it"),
        entry(42.0),
        entry(20.0, asked="mcs"),
    ]
    lines = folded(entries)
    assert [(line.first.time, line.times, line.first.asked) for line in lines] == [
        (0.0, 41, "api"),
        (20.0, 1, "mcs"),
        (41.0, 1, "api"),
        (42.0, 1, "api"),
    ]
    assert lines[0].line().endswith("asked for api, got nothing, because nobody is ready (41 times in 40 s)")


def test_after_a_pause_it_is_told_again() -> None:
    assert [line.times for line in folded([entry(0.0), entry(10.0), entry(100.0)])] == [2, 1]


def test_the_command_for_the_journal() -> None:
    words = ledger.journal_command(since=12.5, follow=True)
    assert words[0] == "journalctl"
    assert {"--since=@12.500000", "--follow", "--unit=dnsmasq.service", "--output=json"} <= set(words)
    assert "--after-cursor=s=1" in ledger.journal_command(cursor="s=1")
    assert not any(word.startswith(("--since", "--after", "--follow")) for word in ledger.journal_command())


def in_its_place(*words: str) -> Callable[..., command.InHelper]:
    """For what finds the way into the helper: a command of this host."""
    return lambda *_: lambda _: words


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What the helper's journal holds."""
    path = tmp_path / "journal.json"
    path.write_text("".join(line + "\n" for name in UNITS for line in recorded(name)))
    monkeypatch.setattr(command, "_helper", in_its_place("cat", str(path)))
    return path


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((), None),
        (("--service", "nfs"), 4),
        (("--service", "http", "--machine", "master-0"), 1),
        (("--service", "http", "--machine", "worker-0.lab.falsework.test"), 2),
        (("--machine", "02:00:00:00:00:99"), 1),
        (("--machine", "10.9.9.9"), 1),
        (("--machine", "worker-1", "--service", "dhcp"), 0),
    ],
)
def test_the_command(
    journal: Path, words: tuple[str, ...], count: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "--dir", str(tmp_path / "site"), *words]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert main(["ledger", "--dir", str(tmp_path / "site"), "--json", *words]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == count if count is not None else 0 < len(printed) < len(objects)
    assert all(set(one) == set(LedgerEntry.__dataclass_fields__) for one in objects)


def test_following_shows_what_comes_when_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(service=None, json=False, follow=True)

    def source() -> Iterable[str]:
        yield record(ledger.NFS_UNIT, (JOURNAL / "nfs-ganesha.log").read_text().splitlines()[-3])
        text = "Server api/master-0 is DOWN, reason: Layer4 timeout, check duration: 1ms. 0 active and 0 backup"
        yield record(ledger.BALANCER_UNIT, text)
        assert "its place in api" in capsys.readouterr().out

    command.show(source(), SITE, None, options)


def test_a_helper_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_helper", in_its_place("sh", "-c", "echo it is off >&2; exit 1"))
    assert main(["ledger", "--dir", str(tmp_path / "site")]) == FalseworkError.exit_code
    said = capsys.readouterr().err
    assert "the helper's journal cannot be read" in said
    assert "it is off" in said


def test_an_unknown_machine_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "--dir", str(tmp_path / "site"), "--machine", "nobody"]) == 2
    assert "there is no machine nobody" in capsys.readouterr().err


# The Machine Config Servers


def answered(number: int, client: str = "192.168.126.101", status: int = 200) -> str:
    line = {"time": START + number, "service": "mcs", "client": client, "asked": "GET /config/master"}
    return json.dumps(
        {**line, "machine": "x", "status": status, "bytes": number, "because": "" if status < 400 else "no"}
    )


def test_machine_config_servers_are_read_from_their_files_and_given_once() -> None:
    files: dict[tuple[str, str], bytes] = {}
    servers = ledger.ConfigServers(SITE, ["bootstrap", "master-0"], lambda *place: files.get(place))
    older, current = ledger.CONFIG_SERVER_FILES

    def write(machine: str, path: str, *lines: str) -> None:
        files[machine, path] = "".join(f"{line}\n" for line in lines).encode()

    def news() -> list[str]:
        return [entry.got or entry.because for entry in servers.news()]

    assert news() == []
    write("bootstrap", current, answered(1), answered(2, "192.168.126.111", 500))
    first, second = servers.news()
    assert first.sentence() == "master-0 (192.168.126.101) asked for GET /config/master, got 200, 1 bytes"
    assert second.sentence().startswith(
        "worker-0 (192.168.126.111) asked for GET /config/master, got nothing, because 500"
    )
    assert news() == []
    write("bootstrap", current, answered(2, "192.168.126.111", 500), answered(7, "127.0.0.1"))
    assert [entry.machine for entry in servers.news()] == ["bootstrap"]
    write("master-0", current, answered(3), "nonsense", answered(4))
    assert news() == ["200, 3 bytes", "200, 4 bytes"]
    # Half a line is being written; then the file is full, and another begun.
    files["bootstrap", current] += answered(5).encode()
    assert news() == []
    write("bootstrap", older, answered(1), answered(7, "127.0.0.1"), answered(5))
    write("bootstrap", current, answered(6))
    assert news() == ["200, 5 bytes", "200, 6 bytes"]


def test_they_are_shown_among_the_others_by_time(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(service=None, json=True, follow=False)
    text = "Server api/master-0 is DOWN, reason: Layer4 timeout, check duration: 1ms. 0 active and 0 backup"
    journal = [record(ledger.BALANCER_UNIT, text, milliseconds) for milliseconds in (0, 5000)]
    content = f"{answered(2)}\n".encode()
    servers = ledger.ConfigServers(SITE, ["bootstrap"], lambda _, path: content if path.endswith("jsonl") else None)
    command.show(journal, SITE, None, options, servers)
    printed = [json.loads(line)["service"] for line in capsys.readouterr().out.splitlines()]
    assert printed == ["balancer", "mcs", "balancer"]


def test_following_looks_at_them_when_it_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace(service=None, json=False, follow=True)
    content = f"{answered(2)}\n".encode()
    servers = ledger.ConfigServers(SITE, ["bootstrap"], lambda _, path: content if path.endswith("jsonl") else None)

    def source() -> Iterable[str]:
        yield ""
        assert "GET /config/master" in capsys.readouterr().out
        yield ""

    command.show(source(), SITE, None, options, servers)
    assert capsys.readouterr().out == ""
