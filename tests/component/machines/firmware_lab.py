"""A helper's services and a machine that is switched on beside them, in network namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

sys.path.append(str(Path(__file__).parents[1] / "helper"))
from helper_namespace import Namespace as Namespace
from helper_namespace import cable as cable

from eventually import PATIENCE
from falsework.helper.render import dnsmasq, pxe
from falsework.site.load import default_site
from falsework.site.ports import BOOT_HTTP, MACHINE_CONFIG_SERVER

SITE = default_site()
MASTER = SITE.masters[0]
HELPER = str(SITE.helper.address)
MACHINE_CONFIG_URL = f"https://{SITE.api_int_host}:{MACHINE_CONFIG_SERVER}/config/master"

_CLIENT = Path(__file__).parent / "firmware_client.py"
_SERVER = Path(__file__).parent / "config_server.py"


class Boot:
    """A machine that boots. What it says can be read while it does."""

    def __init__(self, child: subprocess.Popen[bytes], output: Path, folder: Path) -> None:
        self._child = child
        self._output = output
        self.pid = child.pid
        self.upper = folder / "upper"

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._output.read_text().split("\n")[:-1] if line.startswith("{")]

    @property
    def console(self) -> list[str]:
        return [event["said"] for event in self.events() if "said" in event]

    @property
    def doing(self) -> list[str]:
        return [event["doing"] for event in self.events() if "doing" in event]

    def says(self, *words: str) -> bool:
        return any(all(word in line for word in words) for line in [*self.console, *self.doing])

    @property
    def output(self) -> str:
        """All that came out of it, on either stream."""
        return self._output.read_text()

    def end(self) -> dict[str, Any]:
        """The last event: the lease, or the error."""
        self._child.wait(PATIENCE)
        events = self.events()
        assert self._child.returncode == 0, self.output
        return events[-1]


@dataclass(frozen=True)
class FirmwareLab:
    server: Namespace
    client: Namespace
    folder: Path
    os_root: Path

    @property
    def tftp(self) -> Path:
        return self.folder / "tftp"

    @property
    def http(self) -> Path:
        return self.folder / "http"

    @contextlib.contextmanager
    def dnsmasq(self) -> Iterator[None]:
        config, leases, log = self.folder / "dnsmasq.conf", self.folder / "leases", self.folder / "dnsmasq.log"
        leases.touch()
        config.write_text(dnsmasq.render(SITE, str(self.tftp)))
        options = ("--pid-file=", f"--dhcp-leasefile={leases}", "--user=root", "--log-facility=-", "--log-dhcp")
        with self.server.daemon("dnsmasq", "--keep-in-foreground", "-C", config, *options, log=log) as child:
            yield
            assert child.poll() is None, log.read_text()

    @contextlib.contextmanager
    def config_server(self, port: int = BOOT_HTTP, certificate: Path | None = None) -> Iterator[None]:
        words = (sys.executable, _SERVER, HELPER, port, self.http, *([certificate] if certificate else []))
        with self.server.daemon(*map(str, words), log=self.folder / f"http-{port}.log"):
            yield

    @contextlib.contextmanager
    def switched_on(self, mac: str = MASTER.mac, config: Path | None = None) -> Iterator[Boot]:
        """The machine's program has mounts of its own, and ends with the block."""
        self.client.run("ip", "link", "set", "eth0", "address", mac)
        number = len(list(self.folder.glob("machine-*")))
        folder, output = self.folder / f"machine-{number}", self.folder / f"output-{number}"
        folder.mkdir()
        words = ("unshare", "--mount", "--propagation", "private", sys.executable, _CLIENT, self.os_root, folder)
        with self.client.daemon(*map(str, words), config or mac, log=output) as child:
            yield Boot(child, output, folder)

    def serve(self, path: str, config: dict[str, Any]) -> None:
        file = self.http / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(config))


@contextlib.contextmanager
def firmware_lab(folder: Path, os_root: Path) -> Iterator[FirmwareLab]:
    with cable(SITE) as (server, client):
        lab = FirmwareLab(server, client, folder, os_root)
        for name, text in pxe.render(SITE).items():
            file = lab.tftp / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        lab.http.mkdir(exist_ok=True)
        yield lab


def listens(server: Namespace, port: int) -> bool:
    return f":{port} " in server.run("ss", "-lntH")


def running_in(folder: Path) -> dict[int, str]:
    """Processes whose root or mounts are in the folder, and their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder) in str((process / "root").readlink()) or str(folder) in (process / "mounts").read_text():
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
    return found


def write_certificate(path: Path) -> bytes:
    """A key and a certificate for the API's names, which vouches for itself; returns the certificate."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    names = [x509.DNSName(SITE.api_int_host), x509.IPAddress(IPv4Address(HELPER))]
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(hours=1))
    signed = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    certificate = signed.public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.write_bytes(private + certificate)
    return certificate
