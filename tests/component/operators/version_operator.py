"""The Cluster Version Operator as a process of its own, as in its pod."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from real_api import RealApi

from falsework.assets.payload import DEFAULT_PAYLOAD

VERSION = "1.2.3"
IMAGE = "registry.example/release:1.2.3"


@contextlib.contextmanager
def version_operator(api: RealApi, log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *(sys.executable, "-m", "falsework.in_machine", "cluster-version-operator"),
        f"--kubeconfig={api.kubeconfig}",
        f"--release-version={VERSION}",
        f"--release-image={IMAGE}",
        *(f"--image={name}={reference}" for name, reference in DEFAULT_PAYLOAD.images.items()),
        "--listen=127.0.0.1:0",
        # Only who is told to waits for a lease: its namespace is made by others.
        *(words if "--leader-elect" in words else ("--no-leader-elect", *words)),
    ]
    with log.open("ab") as output:
        child = subprocess.Popen(argv, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(30)
        finally:
            child.kill()
            child.wait()
