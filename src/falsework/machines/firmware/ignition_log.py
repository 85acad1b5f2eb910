"""What Ignition says of itself, for a console: without noise, without secrets, and with what it waits for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

_LINE = re.compile(r"(EMERGENCY|ALERT|CRITICAL|ERROR|WARNING|NOTICE|INFO|DEBUG) *: (.*)")
_ATTEMPT = re.compile(r"(?:\w+: )*GET (\S+): attempt #(\d+)")
_RESULT = re.compile(r"(?:\w+: )*GET result: (.*)")
_FAILURE = re.compile(r'(?:\w+: )*GET error: (?:Get "[^"]*": )?(?:dial \w+ \S+: )?(?:connect: )?(.*)')
_OPERATION = re.compile(r"op\([0-9a-f]+\): ")

_SECRETS = (
    # File contents and configs inside of a config.
    (re.compile(r"data:[^\s\"']*"), "data:…"),
    # As in the command line of useradd.
    (re.compile(r"(--?password[\"']?[ =][\"']?)[^\s\"']+"), r"\1…"),
    (re.compile(r"://[^/\s@]+@"), "://…@"),
    (re.compile(r"([?&][^=\s&]*(?:token|key|secret|password)[^=\s&]*=)[^&\s\"']+", re.IGNORECASE), r"\1…"),
)
_LONGEST = 300

_NOISE = (
    "Stage: ",
    "fetch complete",
    "Ignition finished successfully",
    "no config dir at ",
    "no configs at ",
    "reading system config file ",
    "no config URL provided",
    "[started] ",
    "processing unit ",
)
_GOOD = ("OK", "No Content")
_TRIED_AGAIN = (
    "Internal Server Error",
    "Not Implemented",
    "Bad Gateway",
    "Service Unavailable",
    "Gateway Timeout",
)
"""The answers Ignition does not take for an answer."""


class IgnitionLog:
    """Reads the lines of one machine's Ignition, however often it is started."""

    def __init__(self, say: Callable[[str], None], doing: Callable[[str], None]) -> None:
        self._say = say
        self._doing = doing
        self._url = ""
        self._tries: Counter[str] = Counter()
        self._reason: dict[str, str] = {}
        self._informed: set[str] = set()
        self.attempt = 0
        """How often the present run of Ignition has asked for what it wants now."""
        self.failed_attempt = False
        """Whether the last line was a failure it will get over by itself."""
        self.refused = ""
        """Which address gave a final answer, and it was no."""
        self.complaints: list[str] = []

    def start(self) -> None:
        """A new run begins."""
        self.attempt, self.failed_attempt, self.refused, self.complaints = 0, False, "", []

    def take(self, line: str) -> None:
        self.failed_attempt = False
        found = _LINE.fullmatch(line)
        if not found or found[1] == "DEBUG":
            return
        message = without_secrets(found[2])
        if attempt := _ATTEMPT.fullmatch(message):
            self._asking(attempt[1], int(attempt[2]))
        elif result := _RESULT.fullmatch(message):
            self._answered(result[1])
        elif failure := _FAILURE.fullmatch(message):
            self._not_answered(failure[1])
        elif found[1] in ("INFO", "NOTICE"):
            self._inform(_OPERATION.sub("", message))
        else:
            self.complaints.append(message)
            self._say(f"Ignition: {found[1].lower()}: {message}")

    def _inform(self, text: str) -> None:
        """Each stage says some things again."""
        if text not in self._informed and not any(noise in text for noise in _NOISE):
            self._informed.add(text)
            self._say(f"Ignition: {text.removeprefix('Ignition ').replace('[finished] ', '')}")

    def _asking(self, url: str, attempt: int) -> None:
        self._url, self.attempt = url, attempt
        self._tries[url] += 1
        if self._tries[url] == 1:
            self._say(f"Ignition: GET {url}")
            self._doing(f"GET {url}")

    def _answered(self, result: str) -> None:
        if result in _TRIED_AGAIN:
            self._not_answered(result)
            return
        tries = self._tries[self._url]
        waited_for = self._reason.pop(self._url, "")
        if tries == 1 or waited_for or result not in _GOOD:
            self._say(f"Ignition: GET {self._url}: {result}" + (f", after {tries} tries" if tries > 1 else ""))
        if result not in _GOOD:
            self.refused = f"{self._url} answers: {result}"

    def _not_answered(self, reason: str) -> None:
        self.failed_attempt = True
        tries = self._tries[self._url]
        text = f"GET {self._url}: {reason}, tried {tries} time{'s' if tries > 1 else ''}"
        self._doing(text)
        # Said when it is new, and then ever more rarely.
        if self._reason.get(self._url) != reason or tries & (tries - 1) == 0:
            self._say(f"Ignition: {text}")
        self._reason[self._url] = reason


def without_secrets(text: str) -> str:
    for secret, instead in _SECRETS:
        text = secret.sub(instead, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
