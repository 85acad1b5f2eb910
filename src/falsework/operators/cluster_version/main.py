"""The Cluster Version Operator as a program: what it is told besides what every operator is."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from falsework.manifests.operators.cluster_version import NAME, NAMESPACE, PORT
from falsework.operators.cluster_version.drift import Drift
from falsework.operators.cluster_version.operator import Operator
from falsework.operators.cluster_version.payload import Payload, own_payload, payload_in
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program

LEASE = "version"
"""OpenShift's name for it."""

_WORKERS = 4
_HOUR = 3600.0


def main(words: list[str]) -> int:
    return operator_main(NAME, NAMESPACE, words, _build, port=PORT, resource=None, lease=LEASE, arguments=_arguments)


def _build(program: Program) -> None:
    options = program.options
    payload = _payload(program)
    program.log.info(f"Release {payload.version} has {len(payload.manifests)} manifests")
    drift = Drift(program.client, payload, program.log.warning)
    pool = ThreadPoolExecutor(_WORKERS, "apply")
    operator = Operator(
        program.client,
        payload,
        pool,
        drift,
        program.log.info,
        program.ended.is_set,
        options.resync,
        payload.after_pivot if options.before_pivot else frozenset(),
    )
    operator.wake = program.add(Controller("ClusterVersionController", operator.sync, resync=options.resync)).wake
    # It has nothing to do but what it is woken for.
    drift.wake = program.add(Controller("DriftController", drift.repair, resync=_HOUR, all_keys=tuple)).wake


def _payload(program: Program) -> Payload:
    options = program.options
    version = program.version or _pinned_version()
    if options.release_manifests:
        return payload_in(options.release_manifests, version, options.release_image)
    return own_payload(version, options.release_image, program.images)


def _pinned_version() -> str:
    from falsework.release.payload import load_payload

    return load_payload().version


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release-image", default="", help="the release's image, for the ClusterVersion's history")
    parser.add_argument("--release-manifests", type=Path, help="a folder of manifests (default: this Falsework's)")
    parser.add_argument(
        "--before-pivot",
        action="store_true",
        help="leave what nothing before the pivot needs to the operator on the masters",
    )
    parser.add_argument(
        "--resync", type=float, default=600.0, help="seconds between two looks at everything (default: 600)"
    )
