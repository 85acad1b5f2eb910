"""The Cluster Version Operator as a process of its own. It may do anything, as in its pod."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from operator_process import POD, OperatorProcess, operator_process
from real_api import RealApi

from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.manifests.operators.cluster_version import NAME

IMAGE = "registry.example/release:1.2.3"


def version_operator(api: RealApi, log: Path, *words: str) -> AbstractContextManager[OperatorProcess]:
    images = [f"--image={name}={reference}" for name, reference in DEFAULT_PAYLOAD.images.items()]
    # Only who is told to waits for a lease: its namespace is made by others.
    leads = () if "--leader-elect" in words else ("--no-leader-elect",)
    return operator_process(api, [*POD, NAME], None, log, f"--release-image={IMAGE}", *images, *leads, *words)
