"""The launcher on hosts that are not as it would like them."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A checkout in which Falsework has never been started."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copy(CHECKOUT / "falsework", checkout / "falsework")
    shutil.copytree(CHECKOUT / "locks", checkout / "locks")
    (checkout / "src").symlink_to(CHECKOUT / "src")
    return checkout


def start(checkout: Path, *before: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*before, str(checkout / "falsework"), "--version"),
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def only_these_programs(folder: Path, **scripts: str) -> str:
    """A PATH with the everyday programs of a small system and these scripts."""
    folder.mkdir()
    for name in ("cat", "cksum", "dirname", "flock", "grep", "id", "mkdir", "readlink", "rm", "sh", "tail"):
        program = shutil.which(name)
        assert program
        (folder / name).symlink_to(program)
    for name, script in scripts.items():
        path = folder / name.replace("_", "-")
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


def one_sentence(finished: subprocess.CompletedProcess[str]) -> str:
    assert finished.returncode == 1
    line = finished.stderr.splitlines()[-1]
    assert line.startswith("falsework: ")
    assert "Traceback" not in finished.stderr
    return line


def test_without_network_it_says_so(fresh: Path) -> None:
    offline = {
        "PIP_INDEX_URL": "http://127.0.0.1:1/",
        "PIP_FIND_LINKS": "",
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
    }
    sentence = one_sentence(start(fresh, **offline))
    assert "the Python package index did not answer: check the network, or set PIP_INDEX_URL" in sentence


def test_on_a_full_disk_it_says_which(fresh: Path) -> None:
    mounted = f'mount -t tmpfs -o size=2m none {fresh}/.venv && exec "$0" "$@"'
    (fresh / ".venv").mkdir()
    sentence = one_sentence(start(fresh, "unshare", "--mount", "sh", "-c", mounted))
    assert f"the disk that holds {fresh}/.venv" in sentence
    assert "is full: free about 300 MB or set FALSEWORK_VENV" in sentence


def test_on_an_unknown_distribution_it_asks_for_python(fresh: Path, tmp_path: Path) -> None:
    path = only_these_programs(tmp_path / "bin", python3="exit 1")
    sentence = one_sentence(start(fresh, PATH=path))
    assert "this distribution has neither apt nor dnf: install Python 3.11 or newer" in sentence


def test_without_root_it_tells_what_root_should_run(fresh: Path, tmp_path: Path) -> None:
    path = only_these_programs(tmp_path / "bin", python3="exit 1", id="echo 1000", apt_get="exit 99")
    sentence = one_sentence(start(fresh, PATH=path))
    assert "run 'sudo apt-get install -y --no-install-recommends python3 python3-venv'" in sentence


def test_an_interrupted_first_start_is_begun_again(fresh: Path) -> None:
    (fresh / ".venv").mkdir()
    sum_ = subprocess.run(
        ("cksum",), stdin=(fresh / "locks/runtime.txt").open(), capture_output=True, text=True, check=True
    )
    half = fresh / ".venv" / sum_.stdout.split()[0]
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    finished = start(fresh)
    assert finished.returncode == 0, finished.stderr
    assert "first start" in finished.stderr
    assert start(fresh).stderr == ""


def test_a_second_start_adds_little_to_python_itself() -> None:
    def best(*command: str) -> float:
        """In processor time: on a busy host the clock says little."""
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(times)

    start(CHECKOUT)
    added = best(str(CHECKOUT / "falsework"), "--version") - best(sys.executable, "-c", "pass")
    print(f"\nstart over plain Python: {added * 1000:.0f} ms")
    assert added < 0.3
