"""What the host is and has, as the kernel tells it. Looking changes nothing."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import time
from pathlib import Path

_UNSYNCHRONISED = 5
"""What adjtimex(2) answers when nothing keeps the clock right (TIME_ERROR)."""


class Host:
    """Tests put a host of their own in its place."""

    proc = Path("/proc")
    modules = Path("/lib/modules")
    netns = Path("/run/netns")

    def is_root(self) -> bool:
        return os.geteuid() == 0

    def capabilities(self) -> int:
        """As a bit mask: what this process may do now."""
        for line in (self.proc / "self/status").read_text().splitlines():
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
        return 0

    def cpus(self) -> int:
        return len(os.sched_getaffinity(0))

    def memory_available_mib(self) -> int:
        for line in (self.proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
        return 0

    def sysctl(self, name: str) -> int | None:
        """A number the kernel keeps, or None if this kernel has no such thing."""
        try:
            return int((self.proc / "sys" / name.replace(".", "/")).read_text())
        except (OSError, ValueError):
            return None

    def can_mount(self, file_system: str) -> bool:
        """Whether the kernel knows it, or has a module for it, which it loads by itself when it is needed."""
        if file_system in (self.proc / "filesystems").read_text().split():
            return True
        module = f"/{file_system}.ko"
        lists = (self.modules / os.uname().release / name for name in ("modules.dep", "modules.builtin"))
        return any(module in path.read_text() for path in lists if path.exists())

    def open_files_limit(self) -> int:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def now(self) -> float:
        return time.time()

    def clock_is_synchronised(self) -> bool:
        question = ctypes.create_string_buffer(256)
        return bool(ctypes.CDLL(None).adjtimex(question) != _UNSYNCHRONISED)

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(nearest(path)).free

    def device(self, path: Path) -> int:
        """Two paths of one file system have the same."""
        return nearest(path).stat().st_dev

    def mount_flags(self, path: Path) -> int:
        return os.statvfs(nearest(path)).f_flag

    def namespaces(self, prefix: str) -> list[str]:
        """Named network namespaces."""
        return sorted(path.name for path in self.netns.glob(f"{prefix}*"))


def nearest(path: Path) -> Path:
    """The path, or the first folder above it that is there."""
    return path if path.exists() else nearest(path.parent)
