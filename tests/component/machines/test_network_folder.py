"""The folder of the namespaces' names on a host that never had one; tried where only the test sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRY = """
import subprocess, sys
from pathlib import Path
from lab_network import test_lab
from falsework.machines.namespaces import FOLDER

def mounts():
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if line.split()[4] == str(FOLDER)]

for before in (False, True):
    if before:
        FOLDER.mkdir()
    with test_lab(Path(sys.argv[1]) / f"first-{before}") as first:
        with test_lab(Path(sys.argv[1]) / f"second-{before}") as second:
            first.network.build()
            second.network.build()
            assert len(mounts()) == 1 and "shared:" in mounts()[0], mounts()
            first.remove()
            assert len(mounts()) == 1, "the other lab's names are in it"
            assert second.network.plan() == []
    assert mounts() == [], mounts()
    if FOLDER.exists():
        assert list(FOLDER.iterdir()) == []
        FOLDER.rmdir()
# A folder that `ip` has made stays as it is.
subprocess.run(["ip", "netns", "add", "somebody"], check=True)
with test_lab(Path(sys.argv[1]) / "third") as third:
    third.network.build()
assert len(mounts()) == 1
assert [path.name for path in FOLDER.iterdir()] == ["somebody"]
print("good")
"""


def test_the_last_lab_takes_away_what_the_first_one_made(tmp_path: Path) -> None:
    # A /run of its own, in a mount namespace that passes nothing on to the host's.
    hidden = 'while mountpoint -q /run/netns; do umount -l /run/netns; done; mount -t tmpfs t /run; exec "$@"'
    alone = ("unshare", "--mount", "--propagation", "private", "sh", "-ec", hidden, "alone")
    words = (*alone, sys.executable, "-c", TRY, str(tmp_path))
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, cwd=Path(__file__).parent)
    assert done.stdout == "good\n", done.stdout + done.stderr
