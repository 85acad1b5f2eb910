"""A network of its own for a test: a server's namespace and a client's, joined by one cable.

Both last as long as the processes that hold them, and those die with the test: nothing is left of it,
however it ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "unit" / "helper"))
from helper_samples import TODAY as TODAY
from helper_samples import sites as sites

from falsework.site.model import Site


@dataclass(frozen=True)
class Namespace:
    holder: int

    def words(self, argv: Sequence[str | Path]) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", "--", *map(str, argv)]

    def run(self, *argv: str | Path, timeout: float = 120) -> str:
        done = subprocess.run(self.words(argv), capture_output=True, text=True, check=False, timeout=timeout)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def daemon(self, *argv: str | Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        words = ("setpriv", "--pdeathsig", "KILL", "--", *map(str, argv))
        with log.open("wb") as output, subprocess.Popen(self.words(words), stdout=output, stderr=output) as child:
            try:
                yield child
            finally:
                child.kill()


@contextlib.contextmanager
def namespace() -> Iterator[Namespace]:
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net", "sleep", "infinity"]) as holder:
        try:
            mine = Path("/proc/self/ns/net").readlink()
            while Path(f"/proc/{holder.pid}/ns/net").readlink() == mine:
                assert holder.poll() is None, "unshare --net failed"
                time.sleep(0.01)
            yield Namespace(holder.pid)
        finally:
            holder.kill()


@contextlib.contextmanager
def cable(site: Site) -> Iterator[tuple[Namespace, Namespace]]:
    """Server, with the helper's address, and client, with none."""
    with namespace() as server, namespace() as client:
        server.run("ip", "link", "add", "lab0", "type", "veth", "peer", "name", "eth0", "netns", str(client.holder))
        server.run("ip", "address", "add", f"{site.helper.address}/{site.lab.cidr.prefixlen}", "dev", "lab0")
        for link in ("lo", "lab0"):
            server.run("ip", "link", "set", link, "up")
        for link in ("lo", "eth0"):
            client.run("ip", "link", "set", link, "up")
        yield server, client
