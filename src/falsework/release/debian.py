"""Root file systems of Debian packages, made by mmdebstrap and put into one fixed form.

Debian's archive serves only the newest version of a package. The lock file notes the packages a root was
pinned with; where the archive has moved on, the root comes out different, and the caller is told with which
packages.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from falsework.process import CommandError, run
from falsework.release.payload import DebianRoot
from falsework.release.tarball import entries_of, write_tar
from falsework.retry import persist

# Made anew wherever a root is used (devices), not needed on any machine (documentation), or different each time (logs,
# caches, backups, host keys).
_LEFT_OUT = (
    "dev/",
    "etc/hostname",
    "etc/resolv.conf",
    "etc/ssh/ssh_host_",
    "etc/apt/sources.list",
    "etc/.pwd.lock",
    "etc/group-",
    "etc/gshadow-",
    "etc/passwd-",
    "etc/shadow-",
    "etc/subgid-",
    "etc/subuid-",
    "usr/share/doc/",
    "usr/share/info/",
    "usr/share/lintian/",
    "usr/share/locale/",
    "usr/share/man/",
    "var/cache/",
    "var/lib/apt/",
    "var/lib/dpkg/status-old",
    "var/lib/dpkg/lock",
    "var/lib/systemd/catalog/database",
    "var/log/",
)

_HASHED_PACKAGES = 'cd "$1/var/cache/apt/archives" && sha256sum *.deb >>"$PACKAGE_HASHES"'


def build_root(
    root: DebianRoot, epoch: int, target: Path, folder: Path, report: Callable[[str], None]
) -> dict[str, str]:
    """Write the root as a tar archive to `target`; return package → `version sha256` of what is in it."""
    raw = folder / "raw.tar"
    hashes = folder / "packages"

    def debootstrap() -> None:
        hashes.unlink(missing_ok=True)
        run(
            (
                *("mmdebstrap", "--mode=root", f"--variant={root.variant}", f"--include={','.join(root.include)}"),
                *("--aptopt=Acquire::Retries 5", "--aptopt=APT::Keep-Downloaded-Packages true"),
                *("--dpkgopt=force-unsafe-io", "--format=tar"),
                # The essential packages are gone when the others come, so there are two moments to look.
                *(f"--extract-hook={_HASHED_PACKAGES}", f"--customize-hook={_HASHED_PACKAGES}"),
                *(root.suite, str(raw), *host_sources(root.suite)),
            ),
            env={"TMPDIR": str(folder), "PACKAGE_HASHES": str(hashes), "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(epoch)},
            silence_limit=300.0,
        )

    persist(
        "the Debian archive",
        debootstrap,
        lambda sentence: report(f"{root.name}: {sentence}"),
        fix="check the network and the host's apt sources, or use a mirror (falsework release build --mirror …)",
    )
    with tarfile.open(raw) as source:
        write_tar(target, (entry for entry in entries_of(source, epoch) if not _is_left_out(entry.info.name, root)))
    raw.unlink()
    return _packages(hashes.read_text())


def _is_left_out(name: str, root: DebianRoot) -> bool:
    # The folders themselves stay: packages expect them.
    return name.startswith((*_LEFT_OUT, *root.without)) and f"{name}/" not in _LEFT_OUT


def _packages(hashes: str) -> dict[str, str]:
    """From `sha256  name_version_arch.deb` lines."""
    packages = {}
    for line in hashes.splitlines():
        sha256, file = line.split()
        name, version, _ = file.split("_")
        packages[name] = f"{unquote(version)} {sha256}"
    return packages


def host_sources(suite: str) -> list[str]:
    """Where a Debian host of this suite gets its own packages from; elsewhere mmdebstrap knows the archive."""
    try:
        targets = run(("apt-get", "indextargets", "--format", "$(ORIGIN) $(RELEASE) $(REPO_URI) $(COMPONENT)"))
    except CommandError:
        return []
    found = {tuple(line.split()) for line in targets.output.splitlines()}
    return sorted(
        f"deb {fields[2]} {fields[1]} {fields[3]}"
        for fields in found
        if len(fields) == 4 and fields[0] == "Debian" and fields[1].split("-")[0] == suite and fields[3] == "main"
    )
