"""Runs the real Ignition as an initramfs does: first it gets the config, then it writes the machine's root."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.machines.firmware.ignition_log import IgnitionLog
from falsework.machines.firmware.initramfs import CONFIG_FILE, SYSROOT
from falsework.process import CommandError, run

_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "IGNITION_CONFIG_FILE": f"/{CONFIG_FILE}",
    # The system's authorities are all in one file. Read from there alone, and not once more from a file for each.
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    "SSL_CERT_DIR": "/nowhere",
}
_CACHE = "run/ignition.json"
_TIMED_OUT = "unable to fetch resource in time"

_PATIENT_AFTER = 60.0
_ATTEMPTS = 4
_PAUSE = 0.8
_RARELY = 5.0

_DISK_SECTIONS = ("disks", "raid", "filesystems", "luks")


@dataclass(frozen=True)
class Applied:
    """What is now in the machine's root."""

    places: frozenset[str]
    """The paths the config has something to say about."""


class _StartAgain(Exception):  # noqa: N818 - no error, a decision
    """Ignition's next try is further off than a new Ignition's first one."""


def apply(view: Path, platform: str, say: Callable[[str], None], doing: Callable[[str], None]) -> Applied:
    """`view` is the root of an initramfs. Returns when the config is applied, however long its servers take to come."""
    log = IgnitionLog(say, doing)
    _fetch(view, platform, log)
    config = json.loads((view / _CACHE).read_bytes())
    _refuse_disks(config)
    if config.get("kernelArguments"):
        say("Ignition: the config's kernel arguments have no effect: the kernel of this machine is the host's")
    doing("Ignition writes the machine's files")
    log.start()
    try:
        _stage("files", view, platform, log.take)
    except CommandError:
        raise _failure("files", log) from None
    storage: Mapping[str, Any] = config.get("storage") or {}
    nodes = (node for kind in ("files", "links", "directories") for node in storage.get(kind) or ())
    return Applied(frozenset(node["path"] for node in nodes))


def _fetch(view: Path, platform: str, log: IgnitionLog) -> None:
    """Ignition asks after 0.2, 0.4, 0.8 … and at last every 5 s, and no setting changes that.

    Machines are switched on before the servers they wait for are up, so in the first minute it is started anew
    instead: a server is noticed a second after it is up. Nothing has been written yet that a second run could meet.
    """
    began = time.monotonic()

    def read(line: str) -> None:
        log.take(line)
        if log.failed_attempt and log.attempt >= _ATTEMPTS and time.monotonic() - began < _PATIENT_AFTER:
            raise _StartAgain

    while True:
        log.start()
        try:
            _stage("fetch", view, platform, read)
        except _StartAgain:
            time.sleep(_PAUSE)
        except CommandError:
            if not any(_TIMED_OUT in complaint for complaint in log.complaints):
                raise _failure("fetch", log) from None
            time.sleep(_RARELY)
        else:
            return


def _stage(stage: str, view: Path, platform: str, each_line: Callable[[str], None]) -> None:
    options = (f"-platform={platform}", f"-stage={stage}", f"-root=/{SYSROOT}", "-log-to-stdout")
    run(("chroot", view, "/usr/bin/ignition", *options), only_env=_ENVIRONMENT, each_line=each_line)


def _failure(stage: str, log: IgnitionLog) -> FalseworkError:
    """From its log alone: to stderr Ignition prints the whole config, with all keys, when it fails."""
    if log.refused:
        return FalseworkError(
            f"Ignition got no {'config' if stage == 'fetch' else 'file'}: {log.refused}",
            cause="the server has none for this machine, or does not expect it to boot now",
        )
    reasons = dict.fromkeys(complaint.removeprefix("Ignition failed: ") for complaint in log.complaints)
    return FalseworkError(
        f"Ignition failed in its {stage} stage",
        cause="; ".join(list(reasons)[-3:]) or None,
    )


def _refuse_disks(config: Mapping[str, Any]) -> None:
    storage: Mapping[str, Any] = config.get("storage") or {}
    if wanted := [section for section in _DISK_SECTIONS if storage.get(section)]:
        raise FalseworkError(
            f"the config sets up {' and '.join(wanted)}, and this machine has no disk",
            cause="its root is a folder on the host",
            fix="take that out of the config, or give the machine to a provider with disks",
        )
