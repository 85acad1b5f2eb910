"""The OS image every machine runs: Debian with systemd, and the release's programs a node needs.

Nothing in it starts by itself: users, units and what is enabled come to a machine by Ignition.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from falsework.process import run
from falsework.release import oc
from falsework.release.cache import Cache
from falsework.release.images import OS_ROOT
from falsework.release.payload import Payload
from falsework.release.recipes import Part, key_of, unpack_tar
from falsework.release.tarball import Entry, entries_of, file_entry, folder_entry, link_entry, write_tar

NAME = "os"

# Debian enables services when they are installed, by links here and by presets. A machine gets neither.
_ENABLED_BY_DEBIAN = ("etc/systemd/system/", "usr/lib/systemd/system-preset/", "lib/systemd/system-preset/")

_SETTINGS = {
    # systemd applies presets, and with them what Ignition enabled, only where this word says 'first boot'.
    "etc/machine-id": "uninitialized\n",
    "usr/lib/systemd/system-preset/99-disable-all.preset": "disable *\n",
    # What a machine said before it lost its power is what one wants to read.
    "etc/systemd/journald.conf.d/50-falsework.conf": "[Journal]\nStorage=persistent\nSystemMaxUse=256M\n",
    # Ignition keeps its keys in a file of its own.
    "etc/ssh/sshd_config.d/50-falsework.conf": (
        "AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition\nPasswordAuthentication no\n"
        "HostKey /etc/ssh/ssh_host_ed25519_key\n"
    ),
    # Every machine has a host key of its own, made before sshd looks for it; of the one kind that takes no time.
    "usr/lib/systemd/system/ssh.service.d/10-host-keys.conf": (
        "[Service]\nExecStartPre=\n"
        "ExecStartPre=/bin/sh -c 'test -s $0 || ssh-keygen -q -t ed25519 -N \"\" -f $0' /etc/ssh/ssh_host_ed25519_key\n"
        "ExecStartPre=/usr/sbin/sshd -t\n"
    ),
}

_SCRIPTS = {f"usr/bin/{oc.NAME}": oc.SCRIPT}

_LINKS = {
    "etc/systemd/system/default.target": "/usr/lib/systemd/system/multi-user.target",
    "etc/systemd/system/systemd-firstboot.service": "/dev/null",
}


def os_image(cache: Cache, payload: Payload, parts: dict[str, Part]) -> tuple[str, Path]:
    """The image's digest and its unpacked root, to be used as a read-only lower layer."""
    programs = {place: parts[name] for name, place in payload.os_programs.items()}
    inputs = [parts[OS_ROOT].digest, {place: part.digest for place, part in programs.items()}, payload.epoch]
    key = key_of([NAME, inputs, Path(__file__).read_text(), oc.SCRIPT])
    record = cache.record(key)
    digest = record["digest"] if record and cache.find(record["digest"], NAME) else None
    if digest is None:
        with cache.work(NAME) as folder, tarfile.open(parts[OS_ROOT].path) as debian:
            draft = folder / "os.tar"
            write_tar(draft, _entries(debian, programs, payload.epoch))
            digest = cache.add(draft)
        cache.set_record(key, {"digest": digest})
    if not cache.has_tree(NAME, digest):
        with cache.new_tree(NAME, digest) as tree:
            unpack_tar(cache.path_of(digest), tree)
    return digest, cache.tree(NAME, digest)


def write_squashfs(root: Path, epoch: int, target: Path) -> None:
    """The unpacked image as one file that a virtual machine or a server can fetch and mount when it boots."""
    draft = target.with_name(f".{target.name}.draft")
    options = ("-comp", "lz4", "-reproducible", "-mkfs-time", str(epoch), "-noappend", "-no-progress", "-quiet")
    try:
        run(("mksquashfs", root, draft, *options))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def differences(digest_path: Path, tree: Path) -> list[str]:
    """Where the unpacked root is not what its archive says."""
    found = []
    with tarfile.open(digest_path) as archive:
        for member in archive:
            path = tree / member.name
            if not _same(archive, member, path):
                found.append(f"/{member.name}")
    return found


def _same(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if (status.st_uid, status.st_gid) != (member.uid, member.gid):
        return False
    if member.issym():
        return path.is_symlink() and str(path.readlink()) == member.linkname
    if status.st_mode & 0o7777 != member.mode:
        return False
    if not member.isreg():
        return True
    content = archive.extractfile(member)
    assert content is not None
    return status.st_size == member.size and path.read_bytes() == content.read()


def _entries(debian: tarfile.TarFile, programs: dict[str, Part], epoch: int) -> Iterator[Entry]:
    folders: set[str] = set()
    for entry in entries_of(debian, epoch):
        if not _starts_something(entry):
            yield entry
            if entry.info.isdir():
                folders.add(entry.info.name)
    places = [*(place.lstrip("/") for place in programs), *_SETTINGS, *_SCRIPTS, *_LINKS]
    for folder in sorted({str(above) for place in places for above in Path(place).parents[:-1]} - folders):
        yield folder_entry(folder, epoch)
    for place, part in programs.items():
        yield file_entry(place, part.path, epoch, 0o755)
    for place, text in _SETTINGS.items():
        yield file_entry(place, text.encode(), epoch)
    for place, text in _SCRIPTS.items():
        yield file_entry(place, text.encode(), epoch, 0o755)
    for place, target in _LINKS.items():
        yield link_entry(place, target, epoch)


def _starts_something(entry: Entry) -> bool:
    return entry.info.name.startswith(_ENABLED_BY_DEBIAN) and not entry.info.isdir()
