"""The keeper of one namespace machine: its power supply, its firmware and its console.

It is the first process of a process namespace, so that nothing of the machine outlives it, and the only one that
sees the machine's mounts, so that they go with it. It is already in the machine's network namespace and control
groups. On the first boot the firmware fetches and applies the machine's config; then systemd-nspawn runs the
machine's own systemd until it is switched off. A reboot starts over.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import remove_tree, write_file
from falsework.machines import cgroups
from falsework.machines.cgroups import Group
from falsework.machines.firmware.boot import file_boot, join_network, network_boot, set_network
from falsework.machines.provider import Power
from falsework.machines.settings import INTERFACE, MachineFolder, Settings
from falsework.process import CommandError, run

_NOTICES = "falsework-keeper"
_REBOOT = 133
"""What systemd-nspawn ends with when the machine asked to be started again."""
_ESCAPES = re.compile(
    r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][0-9A-B]|[=>78]|\][^\x07\x1b]*(\x07|\x1b\\)?)|[\x00-\x08\x0b-\x1f]"
)


_PRESETS = "etc/systemd/system-preset/20-ignition.preset"
_OF_HARDWARE = (
    "console-getty.service",
    "getty.target",
    "modprobe@.service",
    "systemd-modules-load.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
)


class Console:
    """What the machine shows, each line with the time and the seconds since power on."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1, errors="replace")
        self._started = time.monotonic()
        self._turn = threading.Lock()

    def restart(self) -> None:
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        # Two threads have something to say, and a line's time is that of its place.
        with self._turn:
            now = time.time()
            clock = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03}"
            for line in filter(str.strip, _ESCAPES.sub("", text).splitlines()):
                self._file.write(f"{clock} {time.monotonic() - self._started:9.3f}  {line}\n")


class Keeper:
    def __init__(self, folder: MachineFolder, settings: Settings, groups: list[Group]) -> None:
        """`groups` are the machine's; the keeper itself is in a child of each."""
        self._folder = folder
        self._settings = settings
        self._groups = groups
        self._console = Console(folder.console)

    def run(self) -> None:
        """Until the machine is switched off."""
        # One for all boots: while somebody still listens there, the name cannot be taken again.
        with _notices() as notices:
            threading.Thread(target=self._watch, args=(notices,), daemon=True).start()
            try:
                while self._boot():
                    self._clear()
                self._off("shut down")
            except FalseworkError as error:
                self._console.say(str(error))
                self._off(error.what)

    def _boot(self) -> bool:
        """Whether it is to be started again."""
        self._console.restart()
        self._console.say("power on")
        self._doing("power on")
        self._mount_root()
        if not self._folder.applied.exists():
            self._first_boot()
            self._hide_hardware()
            self._apply_presets()
            # Not before all of it is on the disk: a machine with half a config must start over.
            os.sync()
            write_file(self._folder.applied, b"")
        else:
            self._later_boot()
        return self._run_system()

    def _mount_root(self) -> None:
        folder, settings = self._folder, self._settings
        if not folder.applied.exists():
            for remains in (folder.upper, folder.work):
                remove_tree(remains)
        for place in (folder.root, folder.upper, folder.work):
            place.mkdir(exist_ok=True)
        layers = f"lowerdir={settings.os_root},upperdir={folder.upper},workdir={folder.work}"
        run(("mount", "-t", "overlay", "overlay", "-o", layers, folder.root))

    def _first_boot(self) -> None:
        settings, os_root, root = self._settings, Path(self._settings.os_root), self._folder.root
        if settings.ignition is None:
            network_boot(INTERFACE, settings.mac, os_root, root, self._console.say, self._doing)
        else:
            assert settings.address is not None
            config = Path(settings.ignition)
            file_boot(config, INTERFACE, settings.address, os_root, root, self._console.say, self._doing)

    def _later_boot(self) -> None:
        """The config is on the disk; the network is not, if the host was started anew."""
        self._console.say("booting from disk: Ignition has been applied on an earlier boot")
        if self._settings.address is None:
            join_network(INTERFACE, self._settings.mac, self._console.say, self._doing)
        else:
            set_network(INTERFACE, self._settings.address, None, self._console.say)

    def _hide_hardware(self) -> None:
        """Devices and screens are the host's, which would be asked for them by every machine at once."""
        units = self._folder.root / "etc/systemd/system"
        for name in _OF_HARDWARE:
            with contextlib.suppress(FileExistsError):
                (units / name).symlink_to("/dev/null")

    def _apply_presets(self) -> None:
        """Ignition enables units by presets, which systemd applies on a first boot, to every unit there is. With those
        that are named it takes a tenth of the time; then it is no first boot any more."""
        root = self._folder.root
        presets = root / _PRESETS
        lines = presets.read_text().splitlines() if presets.exists() else []
        units = [line.split()[1] for line in lines if line.startswith(("enable ", "disable "))]
        if units:
            run(("chroot", root, "systemctl", "--quiet", "preset", *units), env={"SYSTEMD_OFFLINE": "1"})
        write_file(root / "etc/machine-id", f"{os.urandom(16).hex()}\n".encode(), 0o444)

    def _run_system(self) -> bool:
        """systemd as the machine's first process, until it ends; whether it asked to be started again."""
        self._console.say("starting systemd")
        self._doing("systemd starts")
        try:
            run(cgroups.joined(self._new_groups(), self._command()), env=_ENVIRONMENT, each_line=self._console.say)
        except CommandError as error:
            if error.finished.returncode != _REBOOT:
                raise
            return True
        return False

    def _new_groups(self) -> list[Group]:
        """What the last boot left in them would be in the way: with v2 not even systemd-nspawn could get in."""
        cgroups.remove(group.child(cgroups.MACHINE) for group in self._groups)
        return [cgroups.make(group, cgroups.MACHINE) for group in self._groups]

    def _command(self) -> tuple[str, ...]:
        folder, settings = self._folder, self._settings
        binds = [f"--bind={folder.disk(place)}:{place}" for place in settings.folders]
        binds += [f"--bind-ro={source}:{place}" for place, source in settings.binds.items()]
        return (
            *("systemd-nspawn", "--boot", "--quiet", "--register=no", "--keep-unit", "--notify-ready=yes"),
            *(f"--machine={settings.name}", f"--hostname={settings.hostname}", f"--directory={folder.root}"),
            *(f"--network-namespace-path=/proc/{os.getpid()}/ns/net", "--resolv-conf=off", "--timezone=off"),
            *("--capability=all", "--system-call-filter=@mount @keyring bpf perf_event_open"),
            *("--bind=/dev/kmsg", "--console=read-only", "--link-journal=no", "--setenv=TERM=dumb"),
            *binds,
        )

    def _watch(self, notices: socket.socket) -> None:
        """systemd says when it has started all it was told to."""
        with contextlib.suppress(OSError):
            while notice := notices.recv(4096):
                if b"READY=1" in notice.split(b"\n"):
                    self._console.say("systemd is up")
                    self._folder.set_state(Power.RUNNING, "systemd is up")

    def _clear(self) -> None:
        """What is left of the last boot goes: processes, then the root's mount."""
        self._console.say("reboot")
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        run(("umount", self._folder.root))

    def _doing(self, what: str) -> None:
        self._folder.set_state(Power.BOOTING, what)

    def _off(self, why: str) -> None:
        self._console.say(f"power off: {why}")
        self._folder.set_state(Power.OFF, why)


_ENVIRONMENT = {
    # Containers of the machine set their own limits and sysctls.
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1",
    # Its console is a log: nobody is there to see colours.
    "SYSTEMD_COLORS": "0",
    "NOTIFY_SOCKET": f"@{_NOTICES}",
}


@contextlib.contextmanager
def _notices() -> Iterator[socket.socket]:
    """Where systemd-nspawn tells how far it is. No file: the name is one of the machine's network namespace."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"\0{_NOTICES}")
        yield notices


def main(arguments: list[str]) -> int:
    folder = MachineFolder(Path(arguments[0]))
    settings = folder.settings()
    if settings is None or not folder.switch_on():
        print(json.dumps({"refused": "no such machine" if settings is None else "it is on already"}), flush=True)
        return 1
    Keeper(folder, settings, [group.parent for group in cgroups.groups_of()]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
