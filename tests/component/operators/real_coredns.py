"""A real CoreDNS, by a Corefile made for a pod: as that pod's service account, on ports of this host's loopback."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import yaml
from real_api import RealApi, free_port

UPSTREAM = "127.0.0.77"
"""Whom the "node" asks: its resolv.conf has no place for a port."""

_IN_A_POD = """
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$1" /run/secrets/kubernetes.io/serviceaccount/token
cp "$2" /run/secrets/kubernetes.io/serviceaccount/ca.crt
mount --bind "$3" /etc/resolv.conf
shift 3
exec "$@"
"""


@dataclass(frozen=True)
class Asked:
    port: int
    address: str = "127.0.0.1"

    def answers_at_all(self) -> bool:
        """It says that it is ready before it listens."""
        argv = ("dig", "+tries=1", f"@{self.address}", "-p", str(self.port), "hostname.bind", "TXT", "CH")
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def answers(self, name: str, kind: str = "A") -> list[str]:
        """What it says, or the status if that is not NOERROR."""
        argv = (
            "dig",
            "+time=30",
            "+noall",
            "+answer",
            "+comments",
            f"@{self.address}",
            "-p",
            str(self.port),
            name,
            kind,
        )
        lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
        status = next(
            word.strip() for line in lines if "status:" in line for word in line.split(",") if "status" in word
        )
        if status != "status: NOERROR":
            return [status.removeprefix("status: ")]
        return [line.split(None, 4)[4] for line in lines if line and not line.startswith(";")]


@contextlib.contextmanager
def upstream(program: Path, folder: Path, **names: str) -> Iterator[None]:
    """Answers with these addresses, by name with `_` for dots; it stands for the site's own DNS."""
    hosts = "\n".join(f"    {address} {name.replace('_', '.')}" for name, address in names.items())
    ready = free_port()
    config = folder / "upstream"
    config.write_text(f".:53 {{\n  bind {UPSTREAM}\n  ready 127.0.0.1:{ready}\n  hosts {{\n{hosts}\n  }}\n}}\n")
    with _running((str(program), "-conf", str(config)), folder / "upstream.log", ready, Asked(53, UPSTREAM)):
        yield


@contextlib.contextmanager
def coredns(api: RealApi, program: Path, corefile: str, kubeconfig: Path, folder: Path) -> Iterator[Asked]:
    port, ready, health, metrics = (free_port() for _ in range(4))
    moved = (
        corefile.replace(":5353", f":{port}")
        .replace("    health {", f"    health 127.0.0.1:{health} {{")
        .replace("    ready\n", f"    ready 127.0.0.1:{ready}\n")
        .replace("lameduck 20s", "lameduck 0s")
        .replace("127.0.0.1:9153", f"127.0.0.1:{metrics}")
    )
    files = {
        "token": yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"],
        "resolv.conf": f"nameserver {UPSTREAM}\n",
        "Corefile": moved,
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    authority = api.folder / "tls" / "kube-apiserver-localhost-signer.crt"
    pod = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", _IN_A_POD, "pod")
    argv = (
        *(*pod, str(folder / "token"), str(authority), str(folder / "resolv.conf")),
        *("setpriv", "--pdeathsig", "KILL", "--", str(program), "-conf", str(folder / "Corefile")),
    )
    host, _, api_port = api.url.removeprefix("https://").partition(":")
    env = {**os.environ, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": api_port}
    with _running(argv, folder / "coredns.log", ready, asked := Asked(port), env):
        yield asked


@contextlib.contextmanager
def _running(
    argv: tuple[str, ...], log: Path, ready: int, asked: Asked, env: dict[str, str] | None = None
) -> Iterator[None]:
    with log.open("ab") as output:
        child = subprocess.Popen(("setpriv", "--pdeathsig", "KILL", "--", *argv), stdout=output, stderr=output, env=env)
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{ready}/ready") as answer:
                if answer.status == 200 and asked.answers_at_all():
                    break
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield
    finally:
        child.kill()
        child.wait()
