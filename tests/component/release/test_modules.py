"""Go's module proxy at its worst, played by a server of ours; the go command is the real one."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from falsework import retry
from falsework.errors import FalseworkError
from falsework.progress import Progress
from falsework.release import gobuild, modpins
from falsework.release.cache import Cache
from falsework.release.gobuild import download_modules
from falsework.release.inventory import Release
from falsework.release.payload import MODULES, load_payload
from falsework.release.recipes import Workshop
from falsework.release.sources import Sources

UNIT = load_payload().go_units["cni-plugins"]


class Proxy(ThreadingHTTPServer):
    daemon_threads = True
    refusals = 0
    silent = False
    asked = 0


class Handler(SimpleHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.silent:
            self.connection.recv(1)  # nothing comes, and nothing is answered, until the other side gives up
        elif self.server.refusals:
            self.server.refusals -= 1
            self.send_error(429)
        else:
            super().do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def goroot(cache: Cache, release: Release) -> Path:
    sources = Sources(load_payload(), cache, Progress())
    with cache.exclusive():
        return Workshop(load_payload(), cache, sources.need, print).goroot()


@pytest.fixture(scope="session")
def downloaded(tmp_path_factory: pytest.TempPathFactory, goroot: Path) -> Path:
    """The unit's modules in the layout a proxy serves."""
    caches = tmp_path_factory.mktemp("modules")
    download_modules(UNIT, goroot, caches, print)
    return caches / "mod" / "cache" / "download"


@pytest.fixture
def proxy(downloaded: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setattr(retry.persist, "__kwdefaults__", {"pauses": (0.0, 0.0, 0.0)})
    with Proxy(("127.0.0.1", 0), partial(Handler, directory=str(downloaded))) as server:
        monkeypatch.setenv("GOPROXY", f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_proxy_that_refuses_at_first_is_asked_again(proxy: Proxy, goroot: Path, tmp_path: Path) -> None:
    proxy.refusals = 2
    said: list[str] = []
    download_modules(UNIT, goroot, tmp_path, said.append)
    assert said
    assert all("the Go module proxy answered 'too many requests'; trying again" in sentence for sentence in said)
    assert list((tmp_path / "mod").glob("github.com/containernetworking/plugins@*"))


def test_a_proxy_that_keeps_refusing_ends_in_a_sentence(proxy: Proxy, goroot: Path, tmp_path: Path) -> None:
    proxy.refusals = 10_000
    with pytest.raises(FalseworkError, match="the Go module proxy answered 'too many requests', 4 times in a row"):
        download_modules(UNIT, goroot, tmp_path, lambda _: None)


def test_a_proxy_that_never_answers_is_given_up(
    proxy: Proxy, goroot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the go command to ask at least once.
    monkeypatch.setattr(gobuild, "_SILENCE_LIMIT", 2.0)
    proxy.silent = True
    with pytest.raises(FalseworkError, match="the Go module proxy did not answer, 4 times in a row"):
        download_modules(UNIT, goroot, tmp_path, lambda _: None)
    assert proxy.asked


def test_a_module_that_is_not_the_pinned_one_is_refused(
    proxy: Proxy, goroot: Path, downloaded: Path, tmp_path: Path
) -> None:
    (archive,) = downloaded.glob("github.com/containernetworking/plugins/@v/*.zip")
    whole = archive.read_bytes()
    other = next(path for path in downloaded.rglob("*.zip") if path != archive)
    try:
        archive.write_bytes(other.read_bytes())
        with pytest.raises(FalseworkError):
            download_modules(UNIT, goroot, tmp_path, lambda _: None)
    finally:
        archive.write_bytes(whole)


def test_pinning_what_is_pinned_changes_nothing(
    goroot: Path, downloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The go.mod and go.sum in the repository are what `falsework release modules` writes."""
    copy = tmp_path / "modules"
    shutil.copytree(MODULES, copy)
    monkeypatch.setattr(modpins, "MODULES", copy)
    modpins.pin_modules(UNIT, load_payload(), goroot, downloaded.parents[2])
    for name in ("go.mod", "go.sum"):
        assert (copy / UNIT.name / name).read_text() == (MODULES / UNIT.name / name).read_text()
