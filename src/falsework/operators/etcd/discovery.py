"""etcd-discovery: the init container of etcd's pod on a master.

It waits until the cluster lists this member, writes the configuration etcd is started with, and ends. While it waits,
the operator sees that there is somebody to add. `decision` says what it does when.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.etcd import settings
from falsework.etcd.gateway import EtcdRefusal, EtcdUnreachable, Gateway
from falsework.etcd.wal import identity
from falsework.files import write_file
from falsework.kube import access
from falsework.kube.connection import Patience
from falsework.operators.etcd.decision import Action, Decision, Listing, decide
from falsework.operators.etcd.member_config import Certificates, MemberConfig

Say = Callable[[str], None]

_PAUSE = 0.1
_LONELY = 5.0
"""Seconds for which nobody may answer before a member that has data starts all the same."""
_SETTLED = 0.3
"""Seconds the list must have stayed as it is: the operator adds those who wait together, one by one."""
_PATIENCE = Patience(connect=1.0, answer=4.0, whole=4.0)


@dataclass(frozen=True)
class Discovery:
    config: MemberConfig
    gateway: Gateway
    target: Path
    say: Say
    clock: Callable[[], float] = time.monotonic

    def run(self) -> None:
        """Back when etcd can be started."""
        data = Path(self.config.data)
        began = self.clock()
        seen: Listing | None = None
        since, told = began, ""
        while True:
            listing = self._listing()
            if listing != seen:
                seen, since = listing, self.clock()
            decision = decide(
                self.config.name,
                settings.peer_url(self.config.address),
                listing,
                identity(data),
                patient=self.clock() < began + _LONELY,
            )
            if told != decision.reason:
                told = decision.reason
                self.say(f"{decision.action.value}: {decision.reason}")
            if decision.action is Action.GIVE_UP:
                raise FalseworkError(decision.reason, fix="the etcd operator removes it when quorum allows")
            if decision.action is Action.START or (decision.action is Action.JOIN and self.clock() >= since + _SETTLED):
                self._prepare(decision, data)
                return
            time.sleep(_PAUSE)

    def _listing(self) -> Listing | None:
        try:
            return Listing(*self.gateway.members_and_cluster())
        except (EtcdUnreachable, EtcdRefusal):
            return None

    def _prepare(self, decision: Decision, data: Path) -> None:
        if decision.action is Action.JOIN and (archived := archive(data)):
            self.say(f"what was in {data / 'member'} is now {archived}")
        write_file(self.target, self.config.to_json(decision.initial_cluster), 0o600)


def archive(data: Path) -> Path | None:
    """An earlier life's data, out of the way but not gone."""
    member = data / "member"
    if not member.exists():
        return None
    archived = data / f"member-removed-archive-{datetime.now(UTC).strftime('%Y-%m-%dT%H%M%S.%fZ')}"
    member.rename(archived)
    folder = os.open(data, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return archived


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="etcd-discovery", description=__doc__)
    parser.add_argument("--name", required=True, help="the member's name: the node's")
    parser.add_argument("--address", required=True, help="the node's")
    parser.add_argument("--endpoint", action="append", default=[], help="address of another member (several times)")
    parser.add_argument("--authority", required=True, help="whom members trust")
    parser.add_argument("--certificates", required=True, help="folder with etcd-{peer,serving}-<name>.{crt,key}")
    parser.add_argument("--data", default="/var/lib/etcd")
    parser.add_argument("--config", type=Path, required=True, help="the file to write")
    parser.add_argument("--speed", default="", choices=[str(speed) for speed in settings.Speed])
    parser.add_argument("--max-learners", type=int, default=1)
    parser.add_argument("--quota-bytes", type=int, default=settings.QUOTA_BYTES)
    parser.add_argument("--listen", default="0.0.0.0", help="address to listen on")
    options = parser.parse_args(words)
    certificates = Certificates(options.authority, options.certificates, options.name)
    config = MemberConfig(
        options.name,
        options.address,
        options.data,
        certificates,
        options.speed,
        options.max_learners,
        options.quota_bytes,
        options.listen,
    )
    try:
        gateway = _gateway(certificates, [address for address in options.endpoint if address != options.address])
        Discovery(config, gateway, options.config, _say).run()
    except FalseworkError as error:
        _say(str(error))
        return error.exit_code
    return 0


def _gateway(certificates: Certificates, others: list[str]) -> Gateway:
    own = certificates.pair("peer")
    try:
        authority, certificate, key = (
            Path(path).read_bytes() for path in (certificates.authority, own["cert-file"], own["key-file"])
        )
    except OSError as error:
        raise FalseworkError(
            f"{error.filename} cannot be read",
            cause=str(error.strerror),
            fix="is this machine's name among those of Secret openshift-etcd/etcd-all-certs?",
        ) from None
    context = access.mutual(authority, certificate, key)
    urls = [settings.client_url(address) for address in others]
    return Gateway(lambda: urls, lambda: context, _PATIENCE)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
