"""How openshift-install waits: its words for limits and times, and what it tells when a limit is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from falsework.errors import FalseworkError
from falsework.kube.cluster import Cluster
from falsework.kube.resources import CLUSTER_OPERATORS

_PAUSE = 0.5
_GOOD = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class InstallWaiting:
    cluster: Cluster
    inform: Say
    complain: Say
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], object] = time.sleep

    def until(self, look: Callable[[], str], limit: float | None, failed: type[FalseworkError], failure: str) -> str:
        """Until there is something to be said. `look` may raise what is in the way."""
        deadline = None if limit is None else self.clock() + limit
        while True:
            try:
                found, trouble = look(), ""
            except FalseworkError as error:
                found, trouble = "", error.one_line
            if found:
                return found
            if deadline is not None and self.clock() > deadline:
                self._dump()
                raise failed(failure, cause=trouble or None, fix="see `falsework status`")
            self.pause(_PAUSE)

    def _dump(self) -> None:
        """What the operators say, as far as they can be asked."""
        try:
            operators = self.cluster.all(CLUSTER_OPERATORS)
        except FalseworkError:
            return
        for body in sorted(operators, key=lambda body: str(body["metadata"]["name"])):
            for entry in (body.get("status") or {}).get("conditions") or ():
                kind, status = entry.get("type"), entry.get("status")
                if _GOOD.get(kind, status) != status:
                    self.complain(
                        f"Cluster operator {body['metadata']['name']} {kind} is {status} with "
                        f"{entry.get('reason', '')}: {entry.get('message', '')}"
                    )


def told_limit(limit: float) -> str:
    end = datetime.now(UTC) + timedelta(seconds=limit)
    return f"{duration(limit)} (until {end:%-I:%M%p} UTC)"


def duration(seconds: float) -> str:
    """As Go writes it: 20m0s."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
