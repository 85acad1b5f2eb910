"""A real etcd, kube-apiserver and kube-controller-manager of the release, on loopback, with the PKI of the assets.

    with RealApi.in_folder(release, programs, folder) as api:
        api.client().list(NODES)

Ready in seconds. Everything ends with the block, and with this process if that is killed.
"""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eventually import PATIENCE
from falsework.assets.catalogue import Step, create
from falsework.assets.certificates import BUNDLES
from falsework.assets.kubeconfig import kubeconfig
from falsework.kube.client import Client, Unreachable
from falsework.kube.connection import Patience
from falsework.release.inventory import Release
from falsework.site.load import default_site
from falsework.site.model import Machine, Site

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
_MUCH_PATIENCE = Patience(connect=60.0, answer=120.0, whole=240.0)
_reserved: list[socket.socket] = []


def free_port() -> int:
    """One that nobody else is given, at any address, for as long as the tests run: it is bound here, and not listened
    on. A server that may use an address again, as all of ours may, can listen there all the same."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("0.0.0.0", 0))
    _reserved.append(reserved)
    port: int = reserved.getsockname()[1]
    return port


class RealApi:
    """The site's PKI is in `folder`. Programs can be stopped, killed and started again one by one."""

    def __init__(self, programs: Path, folder: Path, site: Site | None = None) -> None:
        self.folder = folder
        self.site = site or default_site()
        self._programs = programs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = {name: free_port() for name in ("etcd", "etcd-peer", "kube-apiserver", "kcm")}
        create(self.site, folder, Step.ALL)
        for bundle in BUNDLES:
            content = b"".join((folder / "tls" / f"{signer}.crt").read_bytes() for signer in bundle.signers)
            (folder / "tls" / f"{bundle.name}.crt").write_bytes(content)
        self.kubeconfig = self.kubeconfig_for("admin-kubeconfig-client")

    @classmethod
    @contextlib.contextmanager
    def in_folder(
        cls, release: Release, programs: Path, folder: Path, *, with_signer: bool = False
    ) -> Iterator[RealApi]:
        """Everything at work. `programs` is where the release's programs are put, once for all."""
        for name in PROGRAMS:
            release.install(name, programs)
        api = cls(programs, folder)
        try:
            api.start_etcd()
            api.start_apiserver()
            if with_signer:
                api.start_signer()
            yield api
        finally:
            api.stop_all()

    # Asking

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._ports['kube-apiserver']}"

    def client(self, kubeconfig_path: Path | None = None) -> Client:
        """One with much patience: on a busy host a handshake may take many seconds."""
        return Client.from_kubeconfig(kubeconfig_path or self.kubeconfig, patience=_MUCH_PATIENCE)

    def kubeconfig_for(self, name: str) -> Path:
        """A kubeconfig with one of the certificates of the assets, such as `join/master-0`."""
        return self.kubeconfig_with(name, self._tls(f"{name}.crt").read_bytes(), self._tls(f"{name}.key").read_bytes())

    def kubeconfig_with(self, name: str, certificate: bytes, key: bytes) -> Path:
        authority = self._tls("kube-apiserver-localhost-signer.crt").read_bytes()
        path = self.folder / "kubeconfigs" / f"{name.replace('/', '-')}.kubeconfig"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(kubeconfig("real", self.url, authority, name, certificate, key))
        return path

    def machine(self, name: str) -> Machine:
        return next(machine for machine in self.site.machines if machine.name == name)

    # Starting and stopping

    def start_etcd(self) -> None:
        member = f"etcd-serving-{self.site.fqdn(self.site.bootstrap)}"
        client, peer = (f"https://127.0.0.1:{self._ports[name]}" for name in ("etcd", "etcd-peer"))
        serving = self._tls(f"etcd-all-certs/{member}")
        peering = self._tls(f"etcd-all-certs/{member.replace('serving', 'peer')}")
        authority = self._tls("etcd-ca-bundle.crt")
        self._start(
            "etcd",
            "--name=etcd-bootstrap",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=etcd-bootstrap={peer}",
            f"--cert-file={serving}.crt",
            f"--key-file={serving}.key",
            f"--trusted-ca-file={authority}",
            "--client-cert-auth",
            f"--peer-cert-file={peering}.crt",
            f"--peer-key-file={peering}.key",
            f"--peer-trusted-ca-file={authority}",
            "--peer-client-cert-auth",
            "--log-level=warn",
        )
        # An API server that finds nobody there gives up after a while.
        self._wait_for("etcd", self._etcd_is_healthy)

    def start_apiserver(self, *more: str) -> None:
        self._start(
            "kube-apiserver",
            f"--etcd-servers=https://127.0.0.1:{self._ports['etcd']}",
            f"--etcd-cafile={self._tls('etcd-ca-bundle.crt')}",
            f"--etcd-certfile={self._tls('etcd-client.crt')}",
            f"--etcd-keyfile={self._tls('etcd-client.key')}",
            "--bind-address=127.0.0.1",
            f"--advertise-address={self.site.bootstrap.address}",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._ports['kube-apiserver']}",
            f"--client-ca-file={self._tls('kube-apiserver-complete-client-ca-bundle.crt')}",
            f"--tls-cert-file={self._tls('kube-apiserver-localhost-server.crt')}",
            f"--tls-private-key-file={self._tls('kube-apiserver-localhost-server.key')}",
            f"--service-account-key-file={self._tls('service-account.pub')}",
            f"--service-account-signing-key-file={self._tls('service-account.key')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={self.site.networking.service_networks[0]}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            *more,
        )
        self.wait_ready()

    def etcdctl(self, program: Path, *words: str, given: str = "") -> str:
        flags = (
            f"--endpoints=https://127.0.0.1:{self._ports['etcd']}",
            f"--cacert={self._tls('etcd-ca-bundle.crt')}",
            f"--cert={self._tls('etcd-client.crt')}",
            f"--key={self._tls('etcd-client.key')}",
        )
        done = subprocess.run((program, *flags, *words), input=given, capture_output=True, text=True, check=True)
        return done.stdout

    def start_signer(self) -> None:
        """The controllers that sign and (for a node's own renewals) approve certificate requests."""
        signer = self._tls("kubelet-signer")
        self._start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--controllers=csrsigning,csrapproving",
            f"--cluster-signing-cert-file={signer}.crt",
            f"--cluster-signing-key-file={signer}.key",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports['kcm']}",
        )

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        child = self._running.pop(name)
        child.send_signal(how)
        try:
            child.wait(4)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def kill(self, name: str) -> None:
        self.stop(name, signal.SIGKILL)

    def stop_all(self) -> None:
        for name in reversed(list(self._running)):
            self.kill(name)

    def wait_ready(self) -> None:
        client = self.client()
        self._wait_for("kube-apiserver", lambda: client.raw("GET", "/readyz")[0] == 200)
        client.close()

    def _wait_for(self, awaited: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError, Unreachable):
                if condition():
                    return
            for name, child in self._running.items():
                assert child.poll() is None, f"{name} ended:\n{self.log_of(name)}"
            assert time.monotonic() < deadline, self.log_of(awaited)
            time.sleep(0.05)

    def _etcd_is_healthy(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._tls("etcd-ca-bundle.crt")))
        context.load_cert_chain(self._tls("etcd-client.crt"), self._tls("etcd-client.key"))
        connection = http.client.HTTPSConnection("127.0.0.1", self._ports["etcd"], timeout=PATIENCE, context=context)
        with contextlib.closing(connection):
            connection.request("GET", "/health")
            return connection.getresponse().status == 200

    def log_of(self, name: str) -> str:
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-20:])

    def _start(self, name: str, *words: str) -> None:
        assert name not in self._running
        argv: Sequence[str] = ("setpriv", "--pdeathsig", "KILL", "--", str(self._programs / name), *words)
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    def _tls(self, name: str) -> Path:
        return self.folder / "tls" / name
