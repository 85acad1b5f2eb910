"""The program: what it is told, and whom it follows."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.kube.client import Client
from falsework.kube.informer import Informer, follow
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS
from falsework.operators.cluster_version.operator import Operator
from falsework.operators.cluster_version.payload import Payload, own_payload, payload_in
from falsework.operators.runtime.leader import Leader, own_identity
from falsework.operators.runtime.log import Log
from falsework.operators.runtime.options import named_image
from falsework.operators.runtime.waiting import Bell

NAMESPACE = "openshift-cluster-version"
LEASE = "version"

_WORKERS = 4

_LOG = Log("cluster-version-operator")


def main(words: list[str]) -> int:
    options = _parser().parse_args(words)
    bell = Bell()
    bell.end_on_signals()
    try:
        client = Client.from_kubeconfig(options.kubeconfig) if options.kubeconfig else Client.from_pod()
        payload = _payload(options)
        _LOG.info(f"Cluster Version Operator, release {payload.version}, {len(payload.manifests)} manifests")
        return _work(client, payload, bell, options)
    except FalseworkError as error:
        _LOG.error(error.what, cause=error.cause, fix=error.fix)
        return error.exit_code


def _work(client: Client, payload: Payload, bell: Bell, options: argparse.Namespace) -> int:
    leader = (
        Leader(client, NAMESPACE, LEASE, own_identity(), _LOG.info, lost=bell.end) if options.leader_elect else None
    )
    if leader is not None and not leader.acquire(bell.ended):
        return 0
    followed: list[Informer] = []
    with ThreadPoolExecutor(_WORKERS, "apply") as pool:
        operator = Operator(client, payload, pool, bell, _LOG.info, options.resync)
        try:
            followed += [
                follow(client, resource, operator.noticed) for resource in (CLUSTER_VERSIONS, CLUSTER_OPERATORS)
            ]
            operator.run()
        finally:
            for informer in followed:
                informer.stop()
            if leader is not None:
                leader.release()
    return 1 if leader is not None and leader.lost else 0


def _payload(options: argparse.Namespace) -> Payload:
    version = options.release_version or _pinned_version()
    if options.release_manifests:
        return payload_in(options.release_manifests, version, options.release_image)
    return own_payload(version, options.release_image, dict(options.image))


def _pinned_version() -> str:
    from falsework.release.payload import load_payload

    return load_payload().version


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("cluster-version-operator", description=__doc__)
    parser.add_argument(
        "--kubeconfig", type=Path, help="how the API is reached (default: as the pod's service account)"
    )
    parser.add_argument("--release-image", default="", help="the release's image, for the ClusterVersion's history")
    parser.add_argument("--release-version", default="", help="default: the version of this Falsework's release")
    parser.add_argument("--release-manifests", type=Path, help="a folder of manifests (default: this Falsework's)")
    parser.add_argument(
        "--image", type=named_image, action="append", default=[], metavar="NAME=REF", help="an image of the release"
    )
    parser.add_argument("--leader-elect", action="store_true", help="work only while holding the lease")
    parser.add_argument(
        "--resync", type=float, default=120.0, help="seconds between two looks for drift (default: 120)"
    )
    return parser
