"""From what the helper's services write to the journal to entries of the ledger.

A parser takes one service's messages in their order. What it does not know it passes over: a service has more to say
than what it was asked for, and another version says it differently.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from falsework.helper.ledger_entry import LedgerEntry, Service

PATIENCE = 10.0
"""Seconds after which a question that has no answer in the journal is taken for one that got none."""
_WAITING = 1000
"""Questions, or reasons, that are kept for what belongs to them."""


class Parser(Protocol):
    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]: ...

    def flush(self, time: float) -> Iterator[LedgerEntry]:
        """What was held back for a next message, when there is none until then."""


class _Immediate:
    """For parsers that hold nothing back."""

    def flush(self, time: float) -> Iterator[LedgerEntry]:  # noqa: ARG002 - as the others have it
        yield from ()


# dnsmasq


@dataclass
class _Question:
    time: float
    service: Service
    client: str
    asked: str
    answers: list[str] = field(default_factory=list)
    because: str = ""
    is_answered: bool = False

    def entry(self) -> LedgerEntry:
        because = self.because if self.is_answered else self.because or "no answer was sent"
        counts = {answer: self.answers.count(answer) for answer in self.answers}
        got = ", ".join(f"{count} × {answer}" if count > 1 else answer for answer, count in counts.items())
        return LedgerEntry(self.time, self.service, None, self.client, self.asked, got, because)


_ADDRESS = r"[0-9a-fA-F.:]+"
_MAC = r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})+"
_PREFIX = re.compile(r"(?:\w{3} [ \d]\d \d\d:\d\d:\d\d )?dnsmasq(?:-\w+)?(?:\[\d+\])?: ")
"""Before messages that do not come by syslog."""
_DNS = re.compile(rf"(?P<key>\d+ (?P<client>{_ADDRESS})/\d+) (?P<rest>.+)")
_QUERY = re.compile(r"(?:query|auth)\[(\S+?)\] (\S+) from \S+")
_FORWARDED = re.compile(r"forwarded \S+ to (\S+)")
_REPLY = re.compile(r"\S+ \S+ is (.+)")
_DHCP = re.compile(r"(?P<key>\d+) (?P<rest>.+)")
_DHCP_ASKED = re.compile(rf"DHCP(DISCOVER|REQUEST|INFORM|DECLINE|RELEASE)\(\S+\) (?:({_ADDRESS}) )??({_MAC})(?: (.*))?")
_DHCP_GOT = re.compile(rf"DHCP(OFFER|ACK|NAK)\(\S+\) ({_ADDRESS}) {_MAC}(?: (.*))?")
_BOOT_FILE = re.compile(r"(?:bootfile name: |sent size: *\d+ option: *67 bootfile-name +)(\S+)")
_TFTP_SENT = re.compile(rf"sent (.+) to ({_ADDRESS})")
_TFTP_FAILED = re.compile(rf"failed sending (.+) to ({_ADDRESS})")
_TFTP_MISSING = re.compile(rf"file (.+) not found(?: for ({_ADDRESS}))?")
_TFTP_CLOSED = re.compile(r"cannot (?:access|read) (.+): (.+)")
_TFTP_ERROR = re.compile(rf"error (\d+ .*) received from ({_ADDRESS})")

_NO_ANSWERS = {
    "NXDOMAIN": "there is no such name",
    "NODATA": "the name has no record of this kind",
    "REFUSED": "the question was refused",
    "SERVFAIL": "the server asked failed",
}


class Dnsmasq:
    """Needs `log-queries=extra` and `log-dhcp`: then a number says which lines belong together."""

    def __init__(self, tftp_root: str) -> None:
        self._root = tftp_root.rstrip("/") + "/"
        self._waiting: OrderedDict[str, _Question] = OrderedDict()
        self._aborted: dict[str, str] = {}

    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]:
        message = _PREFIX.sub("", message, count=1).strip()
        if found := _DNS.fullmatch(message):
            yield from self._finished(time, found["key"])
            yield from self._dns(time, found["key"], found["client"], found["rest"])
        elif found := _DHCP.fullmatch(message):
            yield from self._finished(time, found["key"])
            yield from self._dhcp(time, found["key"], found["rest"])
        else:
            yield from self._finished(time, "")
            yield from self._tftp(time, message)

    def flush(self, time: float) -> Iterator[LedgerEntry]:
        return self._finished(time, "")

    def _finished(self, time: float, key: str) -> Iterator[LedgerEntry]:
        """An answer is written in one go: with a line of another question it is complete."""
        for waiting, question in list(self._waiting.items()):
            late = question.time < time - PATIENCE or len(self._waiting) > _WAITING
            if waiting != key and (question.is_answered or late):
                yield self._waiting.pop(waiting).entry()

    def _ask(self, key: str, question: _Question) -> Iterator[LedgerEntry]:
        if earlier := self._waiting.pop(key, None):
            yield earlier.entry()
        self._waiting[key] = question

    def _dns(self, time: float, key: str, client: str, text: str) -> Iterator[LedgerEntry]:
        if found := _QUERY.fullmatch(text):
            yield from self._ask(key, _Question(time, Service.DNS, client, f"{found[1]} {found[2]}"))
        elif question := self._waiting.get(key):
            if found := _FORWARDED.fullmatch(text):
                question.because = f"{found[1]} was asked and has not answered"
            elif found := _REPLY.fullmatch(text):
                question.is_answered = True
                word = re.split(r"[- ]", found[1])[0]
                question.because = _NO_ANSWERS.get(word, "")
                question.answers += [] if question.because else [found[1]]

    def _dhcp(self, time: float, key: str, text: str) -> Iterator[LedgerEntry]:
        if found := _DHCP_ASKED.fullmatch(text):
            kind, address, mac, remark = found.groups()
            asked = f"DHCP{kind} {address}" if address else f"DHCP{kind}"
            question = _Question(time, Service.DHCP, mac.lower(), asked)
            if remark == "ignored":
                question.because, question.is_answered = "no machine of the site has this MAC", True
            elif kind in ("DISCOVER", "REQUEST", "INFORM"):
                question.because = remark or ""
            else:
                # Nobody waits for an answer to these.
                question.answers, question.is_answered = ["that noted"], True
            yield from self._ask(key, question)
        elif waiting := self._waiting.get(key):
            if found := _DHCP_GOT.fullmatch(text):
                waiting.is_answered = True
                if found[1] == "NAK":
                    waiting.because = f"it may not have that: {found[3] or 'no reason given'}"
                else:
                    waiting.because, waiting.answers = "", [found[2]]
            elif found := _BOOT_FILE.match(text):
                waiting.answers.append(f"boot file {found[1]}")

    def _tftp(self, time: float, text: str) -> Iterator[LedgerEntry]:
        def entry(client: str | None, path: str, got: str, because: str) -> LedgerEntry:
            return LedgerEntry(time, Service.TFTP, None, client or "", path.removeprefix(self._root), got, because)

        if found := _TFTP_SENT.fullmatch(text):
            yield entry(found[2], found[1], "it", "")
        elif found := _TFTP_FAILED.fullmatch(text):
            yield entry(found[2], found[1], "", self._aborted.pop(found[2], "it stopped taking it"))
        elif found := _TFTP_MISSING.fullmatch(text):
            yield entry(found[2], found[1], "", "there is no such file")
        elif found := _TFTP_CLOSED.fullmatch(text):
            yield entry(None, found[1], "", found[2].lower())
        elif found := _TFTP_ERROR.fullmatch(text):
            # The line that says which file comes after it.
            self._aborted = {found[2]: f"it said error {found[1]}"}


# Our own servers, and the registry: all speak of HTTP.


def _http_entry(
    time: float, service: Service, client: str, asked: str, status: int, size: int, because: str
) -> LedgerEntry:
    refused = status >= 400
    got = "" if refused else f"{status}, {size} bytes"
    if refused:
        because = f"{status}: {because}" if because else str(status)
    return LedgerEntry(time, service, None, client, asked, got, because)


class OwnServer(_Immediate):
    """The boot server, or the Machine Config Server: a line of JSON for each answer."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]:
        line = _object(message)
        if line.get("service") != self._service:
            return
        moment, status, size = line.get("time"), line.get("status"), line.get("bytes")
        if isinstance(moment, int | float) and math.isfinite(moment) and 0 <= moment < 1e11:
            time = float(moment)
        if isinstance(status, int) and isinstance(size, int):
            texts = (str(line.get(key) or "") for key in ("client", "asked", "because"))
            client, asked, because = texts
            yield _http_entry(time, self._service, client, asked, status, size, because)


_ACCESS = re.compile(r'(\S+) \S+ \S+ \[[^\]]*\] "(\S+) (\S+)[^"]*" (\d{3}) (\d{1,18}|-).*')


class Registry(_Immediate):
    """Distribution's access log has every request; its JSON log, just before, has the reason of those that failed."""

    def __init__(self) -> None:
        self._reasons: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]:
        if found := _ACCESS.fullmatch(message):
            client, method, target, status, size = found.groups()
            because = self._reasons.pop((client, method, target), "")
            count = 0 if size == "-" else int(size)
            yield _http_entry(time, Service.REGISTRY, client, f"{method} {target}", int(status), count, because)
            return
        line = _object(message)
        if "err.message" in line:
            client = str(line.get("http.request.remoteaddr", "")).rpartition(":")[0].strip("[]")
            request = (client, str(line.get("http.request.method")), str(line.get("http.request.uri")))
            detail = line.get("err.detail")
            self._reasons[request] = f"{line['err.message']}{f': {detail}' if detail else ''}"
            if len(self._reasons) > _WAITING:
                self._reasons.popitem(last=False)


# HAProxy

_CONNECTION = re.compile(
    rf"(?P<client>{_ADDRESS}):\d+ \[[^\]]*\] (?P<frontend>\S+) (?P<backend>[^\s/]+)/(?P<server>\S+)"
    r" [-+/\d]+ \+?(?P<bytes>\d{1,18}) (?P<state>\S\S) \S+ \S+"
)
_SERVER = re.compile(
    r"(?:Backup )?Server (?P<backend>[^\s/]+)/(?P<server>\S+)"
    r" (?:(?:is|was)(?: going)? (?P<state>UP|DOWN)\b|enters (?:drain|maintenance)).*"
)
_ENTERED = re.compile(r"\benters (drain|maintenance)")
_REASON = re.compile(r"reason: (.+?)(?:, check duration: .*)?\.? \d+ active and .*|reason: ([^.]+).*")
_NO_SERVER = re.compile(r"backend (\S+) has no server available!")
_NO_SERVER_NAME = "<NOSRV>"
_ENDINGS = {
    "C": "the client broke the connection off",
    "c": "the client was silent for too long",
    "S": "the server broke the connection off",
    "s": "the server was silent for too long",
    "P": "a rule refuses it",
    "R": "the load balancer has no room for it",
    "D": "the server went down",
    "K": "it was ended at the load balancer",
}


class Haproxy(_Immediate):
    """tcplog lines, written when a connection ends, and what health checks find out."""

    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]:
        if found := _CONNECTION.fullmatch(message):
            server, size, because = found["server"], int(found["bytes"]), _ENDINGS.get(found["state"][0], "")
            if found["state"] == "SC":
                because = "no server is ready" if server == _NO_SERVER_NAME else f"{server} refuses connections"
            got = f"{server}, {size} bytes" if size and server != _NO_SERVER_NAME else ""
            if not got and not because:
                because = "it was closed before anything was said"
            yield LedgerEntry(time, Service.BALANCER, None, found["client"], found["frontend"], got, because)
        elif found := _SERVER.fullmatch(message):
            yield self._server(time, found["backend"], found["server"], found["state"], message)
        elif found := _NO_SERVER.fullmatch(message):
            asked = f"a server for {found[1]}"
            yield LedgerEntry(time, Service.BALANCER, None, "", asked, "", "no server is ready")

    def _server(self, time: float, backend: str, server: str, state: str | None, message: str) -> LedgerEntry:
        entered = _ENTERED.search(message)
        got = entered[1] if entered else str(state).lower()
        reason = _REASON.search(message)
        because = (reason[1] or reason[2]) if reason else ""
        # The server is asked here, but its name is what people look for.
        return LedgerEntry(time, Service.BALANCER, server, "", f"its place in {backend}", got, because)


# nfs-ganesha

_GANESHA = re.compile(r".*?ganesha\.nfsd-\d+\[(?P<thread>[^\]]+)\] \S+ :[^:]+:[^:]+:(?P<text>.+)")
_MOUNT = re.compile(r"REQUEST PROCESSING: Calling MNT_MNT path=(.+)")
_MOUNTED = re.compile(rf"MOUNT: Entry supports .* for client ({_ADDRESS})")
_NO_MOUNT = re.compile(rf"MOUNT: Export entry (\S+) (does not .+) for client ({_ADDRESS})")
_NO_ACCESS = re.compile(rf"Access not allowed on Export_Id \d+ (\S+) for client ({_ADDRESS})")


class Ganesha(_Immediate):
    """With NFSPROTO and NFS_V4 at INFO it says what it refuses; mounts that succeed it names only at DEBUG."""

    def __init__(self) -> None:
        self._paths: OrderedDict[str, str] = OrderedDict()

    def feed(self, time: float, message: str) -> Iterator[LedgerEntry]:
        line = _GANESHA.fullmatch(message)
        if not line:
            return

        def entry(client: str, path: str, got: str, because: str) -> LedgerEntry:
            return LedgerEntry(time, Service.NFS, None, client.removeprefix("::ffff:"), path, got, because)

        thread, text = line["thread"], line["text"]
        if found := _MOUNT.fullmatch(text):
            self._paths[thread] = found[1]
            if len(self._paths) > _WAITING:
                self._paths.popitem(last=False)
        elif found := _MOUNTED.fullmatch(text):
            yield entry(found[1], self._paths.pop(thread, "a share"), "it", "")
        elif found := _NO_MOUNT.fullmatch(text):
            # What it was asked for, if it said so before; else the export that was found for it.
            yield entry(found[3], self._paths.pop(thread, found[1]), "", f"export {found[1]} {found[2]}")
        elif found := _NO_ACCESS.fullmatch(text):
            yield entry(found[2], found[1], "", "it is not one of the share's clients")


def _object(message: str) -> dict[str, Any]:
    """A JSON object, empty if it is none."""
    try:
        data = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
