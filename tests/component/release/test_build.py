"""Building for real: the same result twice, after a kill, after damage, and from a mirror without building."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.progress import Progress
from falsework.release import inventory
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from falsework.release.mirror import FolderMirror
from falsework.release.payload import Payload, load_payload
from falsework.release.recipes import BUILD_ROOT, GO_TOOLCHAIN, Part
from falsework.release.sources import Sources

CHECKOUT = Path(__file__).parents[3]
SMALL = "cni-plugins"


def small_payload() -> Payload:
    """Just one small unit of the real payload, with one of its programs."""
    whole = load_payload()
    unit = dataclasses.replace(whole.go_units[SMALL], binaries={"loopback": whole.go_units[SMALL].binaries["loopback"]})
    roots = {BUILD_ROOT: whole.debian_roots[BUILD_ROOT]}
    return dataclasses.replace(whole, go_units={SMALL: unit}, c_programs={}, debian_roots=roots)


class Workbench:
    """An empty cache, and a mirror that has the tools to build with, but nothing that is to be built."""

    def __init__(self, folder: Path, tools: list[Part]) -> None:
        self.output = io.StringIO()
        self.progress = Progress(self.output)
        self.cache = Cache(folder / "cache", self.progress.say)
        blobs = folder / "mirror" / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for tool in tools:
            (blobs / tool.digest).symlink_to(tool.path)
        self.mirror = FolderMirror(folder / "mirror")

    def build(self) -> Part:
        with self.cache.exclusive():
            return Sources(small_payload(), self.cache, self.progress, mirror=self.mirror).gather()["loopback"]


def build_elsewhere(folder: Path) -> tuple[str, ...]:
    """The command that builds at a workbench in a process of its own; it prints the digest and what was said."""
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); from test_build import Workbench;"
        "bench = Workbench(Path(sys.argv[2]), []); print(bench.build().digest); print(bench.output.getvalue())"
    )
    return sys.executable, "-c", script, str(Path(__file__).parent), str(folder)


@pytest.fixture(scope="session")
def tools(cache: Cache, release: Release) -> list[Part]:
    sources = Sources(load_payload(), cache, Progress())
    with cache.exclusive():
        return [sources.need(GO_TOOLCHAIN), sources.need(BUILD_ROOT)]


@pytest.fixture
def workbench(tmp_path: Path, tools: list[Part]) -> Workbench:
    return Workbench(tmp_path, tools)


@pytest.fixture(scope="session")
def taken_up(tmp_path_factory: pytest.TempPathFactory, tools: list[Part]) -> Workbench:
    """One at which a build was killed while the compiler ran: it died too, and nothing half-made was left."""
    folder = tmp_path_factory.mktemp("killed")
    workbench = Workbench(folder, tools)
    builder = subprocess.Popen(build_elsewhere(folder))
    try:
        compiling = folder / "cache" / "go" / "build"
        wait_until(lambda: compiling.is_dir() and len(list(compiling.glob("*/*-d"))) > 20)
    finally:
        builder.send_signal(signal.SIGKILL)
        builder.wait()
    wait_until(lambda: not processes_under(folder))
    assert not list((folder / "cache").glob("records/*"))
    return workbench


@pytest.fixture(scope="session")
def built(taken_up: Workbench) -> Part:
    """By the run after the kill."""
    return taken_up.build()


@pytest.fixture
def warm_workbench(workbench: Workbench, taken_up: Workbench, built: Part) -> Workbench:
    """A workbench whose Go caches have seen the work before: only linking takes time."""
    workbench.cache.root.mkdir()
    workbench.cache.go_caches().symlink_to(taken_up.cache.go_caches())
    return workbench


def test_a_build_elsewhere_gives_the_same_digest_after_a_kill_too(
    taken_up: Workbench, built: Part, release: Release
) -> None:
    """With nothing in common but the tools; and the run that took it up says what it found."""
    other = release.parts["loopback"]
    assert built.path != other.path
    assert built.pinned
    assert built.digest == other.digest
    assert (
        f"an earlier run was interrupted while working on {SMALL}; its drafts were removed"
        in taken_up.output.getvalue()
    )


def test_two_at_once_both_succeed_and_what_is_altered_is_built_again(warm_workbench: Workbench, tmp_path: Path) -> None:
    # Neither can be done before the other has begun.
    with warm_workbench.cache.exclusive():
        both = [subprocess.Popen(build_elsewhere(tmp_path), stdout=subprocess.PIPE, text=True) for _ in range(2)]
        wait_until(lambda: {process.pid for process in both} <= waiting_for_a_lock())
    outputs = [process.communicate(timeout=300)[0] for process in both]
    digest = load_payload().pins["loopback"].sha256
    assert {output.splitlines()[0] for output in outputs} == {digest}
    assert all("waiting for it" in output for output in outputs)
    assert sum(" built" in output for output in outputs) == 1
    part = warm_workbench.build()
    with part.path.open("r+b") as file:
        file.seek(100)
        file.write(b"altered")
    assert warm_workbench.build().digest == digest
    said = warm_workbench.output.getvalue()
    assert "loopback: the cached file had been altered or cut short; it was removed" in said


def test_a_full_disk_is_told(workbench: Workbench, tmp_path: Path) -> None:
    workbench.cache.root.mkdir()
    # Room for the packed tools, but not for the unpacked ones.
    small_disk = f'mount -t tmpfs -o size=400m none {tmp_path}/cache && exec "$0" "$@"'
    finished = subprocess.run(
        ("unshare", "--mount", "--propagation", "private", "sh", "-c", small_disk, *build_elsewhere(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode != 0
    assert f"FalseworkError: the disk that holds {tmp_path}/cache is full" in finished.stderr


def test_an_export_serves_an_empty_host_without_building(tmp_path: Path, release: Release, cache: Cache) -> None:
    if not all(part.pinned for part in release.parts.values()):
        # Debian has had updates since the release was pinned. Then there is nothing to export, and that is said.
        with pytest.raises(FalseworkError, match="no host with this checkout would take it from a mirror"):
            inventory.export(cache, load_payload(), tmp_path / "mirror", Progress())
        return
    falsework("release", "export", str(tmp_path / "mirror"))
    started = time.monotonic()
    empty = tmp_path / "empty"
    # No package source can be reached: everything must come from the mirror.
    output = falsework(
        "release", "build", "--mirror", str(tmp_path / "mirror"), FALSEWORK_CACHE=str(empty), **NO_NETWORK
    )
    print(f"\nfrom a mirror: {time.monotonic() - started:.1f} s")
    assert " built" not in output
    assert not (empty / "go").exists()
    here, there = (
        json.loads(falsework("release", "info", "--json", FALSEWORK_CACHE=str(root)))
        for root in (release.os_root.parents[1], empty)
    )
    tools_only = {BUILD_ROOT}
    assert [item for item in there["components"] if not item["present"] and item["name"] not in tools_only] == []
    assert [item["digest"] for item in there["components"]] == [item["digest"] for item in here["components"]]


def test_a_warm_build_builds_nothing(release: Release) -> None:
    assert " built" not in falsework("release", "build")


NO_NETWORK = {
    "GOPROXY": "http://127.0.0.1:1",
    "PIP_INDEX_URL": "http://127.0.0.1:1",
    "http_proxy": "http://127.0.0.1:1",
    "https_proxy": "http://127.0.0.1:1",
}


def falsework(*arguments: str, **env: str) -> str:
    finished = subprocess.run(
        [str(CHECKOUT / "falsework"), *arguments],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=None if "--json" in arguments else subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def processes_under(folder: Path) -> list[str]:
    """Command lines of living processes that mention a folder, but for the test itself."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and "pytest" not in command:
            found.append(command)
    return found


def waiting_for_a_lock() -> set[int]:
    """Processes, of a lock that another one holds."""
    lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return {int(words[5]) for words in lines if words[1] == "->"}


def wait_until(condition: Callable[[], bool], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
