"""Logging in to a machine. Whose host key it is was read from the machine itself, not believed at first sight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from falsework.assets.keys_in_folder import SSH_KEY
from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.lab.folder import Lab
from falsework.process import CommandError
from falsework.site.model import Helper, Machine, Site

USER = "core"

Read = Callable[[str, str], bytes]
"""A file of a machine, by the machine's name and the path: what a provider offers."""

_HOST_KEYS = tuple(f"/etc/ssh/ssh_host_{kind}_key.pub" for kind in ("ed25519", "ecdsa", "rsa"))


def command(site: Site, lab: Lab, machine: Machine | Helper, read: Read, words: Sequence[str]) -> tuple[str, ...]:
    """What to run in the view so that `words` run in the machine, or a login shell if there are none."""
    key = lab.site_folder / SSH_KEY
    if not key.is_file():
        raise FalseworkError(
            f"{key} is missing",
            cause="the key of the lab's machines is made with the Ignition configs",
            fix=f"run `falsework up --dir {lab.site_folder}`",
        )
    name = site.fqdn(machine)
    settings = {
        "UserKnownHostsFile": _known_hosts(lab, machine, name, read),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        # The address is the site's: logging in works without a name server too.
        "HostKeyAlias": name,
        "IdentitiesOnly": "yes",
        "LogLevel": "ERROR",
    }
    options = [word for option, value in settings.items() for word in ("-o", f"{option}={value}")]
    return (
        "ssh",
        "-F",
        "none",
        *options,
        "-i",
        str(key),
        f"{USER}@{machine.address}",
        *(("--", *words) if words else ()),
    )


def _known_hosts(lab: Lab, machine: Machine | Helper, name: str, read: Read) -> Path:
    lines = []
    for place in _HOST_KEYS:
        try:
            kind, key, *_ = read(machine.name, place).decode().split()
        except (FileNotFoundError, CommandError):
            continue
        lines.append(f"{name} {kind} {key}\n")
    if not lines:
        raise FalseworkError(
            f"{machine.name} has no SSH host keys yet",
            cause="its SSH server makes them as it first starts",
            fix=f"see `falsework machine console {machine.name}`, then run the same command again",
        )
    path = lab.root / "known_hosts" / machine.name
    write_file(path, "".join(lines).encode(), 0o600)
    return path
