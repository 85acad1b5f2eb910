"""From power on to the moment systemd is started, as it is seen on the machine's console."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.machines.firmware import dhcp, interface, pxelinux, tftp
from falsework.machines.firmware.dhcp_packet import Lease
from falsework.machines.firmware.ignition import apply
from falsework.machines.firmware.initramfs import initramfs

Say = Callable[[str], None]
"""Prints a line on the console."""

_LARGEST_CONFIG = 256 * 1024


def network_boot(link: str, mac: str, os_root: Path, sysroot: Path, say: Say, doing: Say) -> Lease:
    """The machine's first boot: everything it is comes over the network.

    The caller is in the machine's network namespace and in a mount namespace of its own. Waits as long as it takes for
    servers that are not up; what is wrong and will stay wrong is a FalseworkError.
    """
    lease = join_network(link, mac, say, doing)
    entry = _boot_config(lease, mac, say, doing)
    platform = _platform(entry)
    with (
        _timed("Ignition: done", say),
        initramfs(os_root, sysroot, entry.command_line, resolv_conf(lease)) as view,
    ):
        applied = apply(view, platform, say, doing)
    # As the initramfs hands over what it knows of the network to the system it starts.
    for place, text in (("/etc/resolv.conf", resolv_conf(lease)), ("/etc/hostname", f"{lease.hostname}\n")):
        if place not in applied.places and text.strip():
            _write(sysroot, place, text)
    return lease


def file_boot(
    config: Path, link: str, address: str, os_root: Path, sysroot: Path, say: Say, doing: Say, router: str | None = None
) -> None:
    """The first boot of a machine that has nobody to ask: its config is a file, its address (with prefix) is known."""
    set_network(link, address, router, say)
    with _timed("Ignition: done", say), initramfs(os_root, sysroot, "", "", config) as view:
        say(f"Ignition: the config is {config.name}")
        apply(view, "file", say, doing)


def join_network(link: str, mac: str, say: Say, doing: Say) -> Lease:
    """Get an address and set it. All that a later boot needs of the network."""
    began = time.monotonic()
    interface.bring_up(link)
    lease = dhcp.lease(link, mac, say, doing)
    interface.set_address(link, f"{lease.address}/{lease.prefix_length}", lease.router)
    say(
        f"DHCP: {lease.server} gave {lease.address}/{lease.prefix_length} to {lease.hostname or mac} for "
        f"{lease.seconds} s, router {lease.router or 'none'}, DNS {' '.join(lease.name_servers) or 'none'} "
        f"({_since(began)})"
    )
    return lease


def set_network(link: str, address: str, router: str | None, say: Say) -> None:
    """The same for a machine whose address is known."""
    interface.bring_up(link)
    interface.set_address(link, address, router)
    say(f"network: {link} has {address}, router {router or 'none'}")


def resolv_conf(lease: Lease) -> str:
    lines = [f"search {' '.join(lease.search)}"] if lease.search else []
    return "".join(f"{line}\n" for line in [*lines, *(f"nameserver {server}" for server in lease.name_servers)])


def _boot_config(lease: Lease, mac: str, say: Say, doing: Say) -> pxelinux.BootEntry:
    if lease.boot_file.rpartition("/")[2] != pxelinux.LOADER:
        raise FalseworkError(
            f"the DHCP server {lease.server} tells {mac} to boot {lease.boot_file or 'nothing'}",
            cause=f"a machine with a BIOS boots {pxelinux.LOADER}",
            fix="compare the server's configuration with 'falsework render dnsmasq'",
        )
    server, began = lease.next_server, time.monotonic()

    def waiting(times: int) -> None:
        text = f"TFTP: {server} does not answer, asked {times} time{'s' if times > 1 else ''}"
        doing(text)
        if times & (times - 1) == 0:
            say(text)

    for file in pxelinux.config_files(lease.boot_file, mac, lease.address):
        doing(f"TFTP: {file} from {server}")
        try:
            content = tftp.fetch(server, file, _LARGEST_CONFIG, waiting)
        except tftp.FileNotServedError:
            say(f"TFTP: {server} has no {file}")
            continue
        entry = pxelinux.boot_entry(file, content.decode(errors="replace"))
        say(f"TFTP: {file} from {server}, {len(content)} bytes ({_since(began)})")
        say(f"pxelinux: {entry.kernel} {' '.join(entry.arguments)}")
        return entry
    raise FalseworkError(
        f"the TFTP server {server} has no boot config for {mac}",
        cause="none of the names pxelinux looks for is there",
        fix="'falsework render pxe' shows what should be",
    )


def _platform(entry: pxelinux.BootEntry) -> str:
    """What Ignition's own start-up in an initramfs takes from the kernel's arguments."""
    # An argument without a value counts as a yes.
    values = {word.partition("=")[0]: word.partition("=")[2] if "=" in word else "1" for word in entry.arguments}
    if values.get("ignition.firstboot", "0") in ("", "0", "no", "off") or "ignition.platform.id" not in values:
        raise FalseworkError(
            "the boot config does not ask for Ignition",
            cause="ignition.firstboot or ignition.platform.id is not among the kernel's arguments",
            fix="'falsework render pxe' shows what it should be",
        )
    return values["ignition.platform.id"]


def _write(sysroot: Path, place: str, text: str) -> None:
    path = sysroot / place.lstrip("/")
    # Not through a link: it would lead out of the machine.
    path.unlink(missing_ok=True)
    path.write_text(text)


@contextlib.contextmanager
def _timed(what: str, say: Say) -> Iterator[None]:
    began = time.monotonic()
    yield
    say(f"{what} ({_since(began)})")


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.2f} s"
