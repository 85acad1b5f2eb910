"""How far the temporary control plane is, asked from the lab's network and from the bootstrap machine itself."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from falsework.checks.answers import Asker
from falsework.checks.check import Check, answered
from falsework.site import ports
from falsework.site.model import Site

_RECORDS = "/var/log/openshift/bootkube.json"
_API_AUTHORITY = "tls/kube-apiserver-lb-signer.crt"
_MCS_AUTHORITY = "tls/root-ca.crt"
_KUBELET_HEALTH = 10248
_MADE_WAY = "/opt/openshift/cb-bootstrap.done"
"""bootkube's mark that the temporary control plane is taken down."""
_SELDOM = 1.0

ReadFile = Callable[[str], bytes]


def machine_checks(asker_in_machine: Asker) -> Iterator[Check]:
    """`asker_in_machine` asks from the bootstrap's own network."""
    health = partial(asker_in_machine.status, "127.0.0.1", _KUBELET_HEALTH, "/healthz")
    yield Check("kubelet", "kubelet", "has a healthy kubelet", lambda: answered(health(), 200))


def control_plane_checks(site: Site, assets: Path, asker: Asker, read_file: ReadFile) -> Iterator[Check]:
    """In the order in which they come true. `read_file` reads one of the bootstrap's."""
    address = str(site.bootstrap.address)
    api = partial(asker.status, address, ports.API, "/readyz", assets / _API_AUTHORITY, site.api_host)
    served = partial(_by_name, site, asker, site.api_int_host, ports.MACHINE_CONFIG_SERVER, assets / _MCS_AUTHORITY)
    balanced = partial(_by_name, site, asker, site.api_host, ports.API, assets / _API_AUTHORITY)
    or_gone = MadeWay(read_file).instead_of
    configs = or_gone(lambda: served("/healthz"))
    yield Check("bootkube", "bootkube", "goes through its stages", partial(_last_failure, read_file))
    yield Check("api", "bootkube", "has an API server that is ready", or_gone(lambda: answered(api(), 200)))
    yield Check("mcs", "bootkube", "serves machine configs through the load balancer", configs)
    yield Check("balanced", "bootkube", "is the API behind the load balancer, by its name", lambda: balanced("/readyz"))


class MadeWay:
    """What the bootstrap has taken down in favour of the masters' own does not come back, and is not missed.

    To know that costs a look into the machine, so it is not looked for with every question.
    """

    def __init__(self, read_file: ReadFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._read_file = read_file
        self._clock = clock
        self._next = 0.0
        self._gone = False

    def instead_of(self, look: Callable[[], str]) -> Callable[[], str]:
        def either() -> str:
            try:
                wrong = look()
            except OSError as error:
                wrong = str(error)
            return "" if wrong and self._has() else wrong

        return either

    def _has(self) -> bool:
        if not self._gone and self._clock() >= self._next:
            self._next = self._clock() + _SELDOM
            with contextlib.suppress(FileNotFoundError):
                self._read_file(_MADE_WAY)
                self._gone = True
        return self._gone


def _by_name(site: Site, asker: Asker, name: str, port: int, authority: Path, path: str) -> str:
    """As a client has it: a name from DNS, then whoever answers there and can prove to be it."""
    address = asker.address_of(str(site.helper.address), name)
    if address is None:
        return f"{name} is not known to the name server"
    return answered(asker.status(address, port, path, authority, name), 200)


def _last_failure(read_file: ReadFile) -> str:
    """What bootkube last failed at, unless it has gone on since."""
    try:
        records: list[dict[str, Any]] = json.loads(read_file(_RECORDS))
    except FileNotFoundError:
        return "bootkube has not started"
    ends = [record for record in records if record.get("result")]
    if not ends or ends[-1]["result"] == "success":
        return ""
    stage, message = ends[-1].get("stage", "bootkube"), ends[-1].get("errorMessage", "")
    return f"{stage} failed: {message.strip().splitlines()[-1] if message.strip() else 'it did not say why'}"
