"""Running a program in another root file system, with chosen folders and nothing else of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from falsework.process import Finished, run

# Mount and process namespaces of its own: whatever is mounted or started in there ends with it. No network.
_ENTER = (
    *("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private"),
    *("sh", "-ec"),
    'root=$1; shift; while [ "$1" != -- ]; do mkdir -p "$root$2"; mount --bind "$1" "$root$2"; shift 2; done; shift; '
    'mkdir -p "$root/proc"; mount -t proc proc "$root/proc"; exec chroot "$root" "$@"',
    "sandbox",
)


def run_in_root(
    root: Path, command: Sequence[str | Path], *, binds: Mapping[Path, str], env: Mapping[str, str] | None = None
) -> Finished:
    """Run `command` with `root` as its root. `binds` maps folders of the host to places in it."""
    arguments = [str(word) for bind in {Path("/dev"): "/dev", **binds}.items() for word in bind]
    return run(
        (*_ENTER, root, *arguments, "--", *command),
        only_env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", **(env or {})},
    )
