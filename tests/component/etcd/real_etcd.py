"""Real etcd processes with TLS, each on a loopback address of its own, started as the pods on masters start them."""

from __future__ import annotations

import contextlib
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path

from eventually import PATIENCE
from falsework.assets import pki
from falsework.assets.pki import Pair, Subject, Use, Validity
from falsework.errors import FalseworkError
from falsework.etcd import settings
from falsework.etcd.gateway import Gateway
from falsework.etcd.members import Member
from falsework.kube import access
from falsework.operators.etcd.discovery import Discovery
from falsework.operators.etcd.member_config import Certificates, MemberConfig

BOOTSTRAP = settings.BOOTSTRAP_MEMBER
MASTERS = ("master-0", "master-1", "master-2")


class RealEtcd:
    """A bootstrap member that runs, and masters that can be told to."""

    def __init__(self, program: Path, folder: Path, network: str = "127.91.7") -> None:
        self.folder = folder
        self.addresses = {name: f"{network}.{number}" for number, name in enumerate((BOOTSTRAP, *MASTERS), 1)}
        self._program = program
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._make_certificates()
        self.gateway = Gateway(lambda: map(settings.client_url, self.addresses.values()), lambda: self.context)

    @classmethod
    @contextlib.contextmanager
    def in_folder(cls, program: Path, folder: Path) -> Iterator[RealEtcd]:
        etcd = cls(program, folder)
        try:
            etcd.start_bootstrap()
            yield etcd
        finally:
            for name in list(etcd._running):
                etcd.kill(name)

    @cached_property
    def context(self) -> ssl.SSLContext:
        return access.mutual(*((self.folder / name).read_bytes() for name in ("ca.crt", "client.crt", "client.key")))

    # Members

    def start_bootstrap(self) -> None:
        peer = settings.peer_url(self.addresses[BOOTSTRAP])
        config = self.config(BOOTSTRAP).to_json(f"{BOOTSTRAP}={peer}").replace(b'"existing"', b'"new"')
        self._config_file(BOOTSTRAP).write_bytes(config)
        self.start(BOOTSTRAP)
        self.until("the bootstrap's member is healthy", lambda: not self.gateway.look().faults)

    def discover(self, name: str, said: Callable[[str], None] = lambda _: None) -> Discovering:
        """What the pod's container does before it is etcd, in a thread."""
        others = [settings.client_url(address) for other, address in self.addresses.items() if other != name]
        gateway = Gateway(lambda: others, lambda: self.context)
        return Discovering(Discovery(self.config(name), gateway, self._config_file(name), said))

    def start(self, name: str) -> None:
        """What it does then, with the configuration that was written last."""
        self._run(name, str(self._program), f"--config-file={self._config_file(name)}")

    def run_pod(self, name: str) -> None:
        """All that the pod's container does."""
        address = self.addresses[name]
        self._run(
            name,
            *(sys.executable, "-m", "falsework.in_machine", "etcd-member"),
            f"--name={name}",
            f"--address={address}",
            *(f"--endpoint={other}" for other in self.addresses.values()),
            f"--authority={self.folder / 'ca.crt'}",
            f"--certificates={self.folder}",
            f"--data={self.data(name)}",
            f"--config={self._config_file(name)}",
            f"--etcd={self._program}",
            "--speed=Standard",
            f"--max-learners={len(MASTERS)}",
            f"--listen={address}",
            f"--metrics={address}",
        )

    def _run(self, name: str, *argv: str) -> None:
        assert name not in self._running
        tied = ("setpriv", "--pdeathsig", "KILL", "--", *argv)
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(tied, stdout=log, stderr=log, start_new_session=True)

    def join(self, name: str) -> None:
        """The whole pod of a member that is listed already."""
        discovering = self.discover(name)
        discovering.finish()
        self.start(name)

    def is_etcd(self, name: str) -> bool:
        """Or something that will become it."""
        return Path(f"/proc/{self._running[name].pid}/exe").resolve() == self._program.resolve()

    def send(self, name: str, what: signal.Signals) -> None:
        self._running[name].send_signal(what)

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> int:
        """The exit code."""
        child = self._running.pop(name)
        child.send_signal(how)
        return child.wait()

    def data(self, name: str) -> Path:
        return self.folder / name

    def config(self, name: str) -> MemberConfig:
        address = self.addresses[name]
        return MemberConfig(
            name,
            address,
            str(self.data(name)),
            Certificates(str(self.folder / "ca.crt"), str(self.folder), name),
            speed="Standard",
            max_learners=len(MASTERS),
            quota_bytes=1 << 30,
            listen=address,
            metrics=address,
        )

    # Asking

    def member(self, name: str) -> Member:
        found = self.gateway.look().reached_by(settings.peer_url(self.addresses[name]))
        assert found is not None, f"{name} is not listed"
        return found

    def until(self, what: str, good: Callable[[], bool], patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        trouble = ""
        while time.monotonic() < deadline:
            try:
                if good():
                    return
            except FalseworkError as error:
                trouble = str(error)
            time.sleep(0.05)
        logs = "\n".join("\n".join((name, *self.log_of(name).splitlines()[-5:])) for name in self.addresses)
        raise AssertionError(f"waited for: {what}\n{trouble}\n{logs}")

    def log_of(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else "-"

    def let_the_bootstrap_lead(self) -> None:
        """It does from the beginning, unless the host was too busy for its heartbeats."""
        bootstrap = self.member(BOOTSTRAP)

        def leads() -> bool:
            leader = next(member for member in self.gateway.members() if member.id == self.gateway.leader())
            if leader != bootstrap:
                self.gateway.move_leadership(leader, bootstrap)
            return leader == bootstrap

        self.until("the bootstrap leads", leads)

    def voters(self) -> set[str]:
        return {member.name for member in self.gateway.members() if not member.is_learner}

    def _config_file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _make_certificates(self) -> None:
        now = pki.utc_now()
        signer = pki.issue(Subject("etcd-signer"), Validity.DAY, now)
        (self.folder / "ca.crt").write_bytes(pki.certificate_pem(signer.certificate))
        both = frozenset({Use.CLIENT, Use.SERVER})
        self._keep("client", pki.issue(Subject("etcd-client"), Validity.DAY, now, signer=signer, uses=both))
        for name, address in self.addresses.items():
            # On loopback all connections come from 127.0.0.1.
            addresses = (ip_address(address), ip_address("127.0.0.1"))
            for kind in ("peer", "serving"):
                pair = pki.issue(Subject(name), Validity.DAY, now, signer=signer, uses=both, addresses=addresses)
                self._keep(f"etcd-{kind}-{name}", pair)

    def _keep(self, name: str, pair: Pair) -> None:
        (self.folder / f"{name}.crt").write_bytes(pki.certificate_pem(pair.certificate))
        (self.folder / f"{name}.key").write_bytes(pki.key_pem(pair.key))


class Discovering:
    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self.error: FalseworkError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._discovery.run()
        except FalseworkError as error:
            self.error = error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def finish(self) -> None:
        self._thread.join(PATIENCE)
        assert self.is_done, "discovery still waits"
        if self.error is not None:
            raise self.error
