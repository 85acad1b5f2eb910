"""An operator as a program: what it is told, one leader at a time, and a clean end."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Callable, Sequence

from falsework.errors import FalseworkError
from falsework.kube.client import Client
from falsework.kube.resources import Resource
from falsework.operators.runtime.cluster_operator import add_cluster_operator
from falsework.operators.runtime.events import Events
from falsework.operators.runtime.health import Health
from falsework.operators.runtime.leader import Leader, own_identity
from falsework.operators.runtime.log import Log
from falsework.operators.runtime.operator_status import NAME, OperatorStatus
from falsework.operators.runtime.options import parsed_options
from falsework.operators.runtime.program import Program

LEASE_LASTS, LEASE_RENEW, LEASE_RETRY = 60.0, 20.0, 1.0
"""Seconds. It has run out before the pods of a node that is gone are made elsewhere, so nobody waits for it then."""


def operator_main(
    name: str,
    namespace: str,
    words: Sequence[str],
    build: Callable[[Program], None],
    *,
    port: int,
    resource: Resource | None,
    object_name: str = NAME,
    object_namespace: str = "",
    cluster_operator: str = "",
    kind: str = "Deployment",
    leads: bool = True,
    lease: str = "",
    arguments: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> int:
    """`build` adds the controllers. `resource` is the kind of the operator's own object, which the ClusterOperator
    (by default: the name without `-operator`) is made of; None if it has neither. A program with
    `leads` False works in several places at once; `lease` is the name of what its leader holds (by default its own with
    `-lock`). `arguments` adds flags of its own, found in `Program.options`."""
    options = parsed_options(name, words, port, leads, arguments)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    log = Log(name)
    try:
        client = Client.from_kubeconfig(options.kubeconfig) if options.kubeconfig else Client.from_pod()
        program = Program(
            name,
            namespace,
            client,
            log,
            Events(client, name, namespace, log, kind),
            options.release_version,
            dict(options.image),
            OperatorStatus(client, resource, object_name, object_namespace) if resource is not None else None,
            options,
            ended,
        )
        if resource is not None and program.status is not None:
            objects = program.follow(resource, object_namespace)
            objects.listen(program.status.noticed)
            reported = cluster_operator or name.removesuffix("-operator")
            add_cluster_operator(program, objects, reported, object_name, object_namespace)
        build(program)
        return _work(program, ended, options, lease or f"{name}-lock")
    except FalseworkError as error:
        log.error(error.what, cause=error.cause, fix=error.fix)
        return error.exit_code


def _work(program: Program, ended: threading.Event, options: argparse.Namespace, lease: str) -> int:
    log = program.log
    leader = _leader(program, lease) if options.leader_elect else None
    leading = threading.Event()
    health = Health(program, leading.is_set, *options.listen)
    health.start()
    log.info(f"{program.name} of release {program.version or 'unknown'} starts")
    # While it waits to lead, too: whoever takes over knows the world already.
    program.start_following()
    if leader is None or leader.acquire(ended):
        leading.set()
        program.events.start()
        finished = program.run(ended)
        program.events.stop()
        # With a sync still in hand the lease runs out by itself: it is for whoever comes after that sync.
        if leader is not None and finished:
            leader.release()
    health.stop()
    program.stop_following()
    log.info(f"{program.name} ends")
    return 0


def _leader(program: Program, lease: str) -> Leader:
    def lost() -> None:
        # Another one may be at work by now: no sync in hand is worth two at a time.
        os._exit(1)

    return Leader(
        program.client,
        program.namespace,
        lease,
        own_identity(),
        program.log.info,
        lost=lost,
        lasts=LEASE_LASTS,
        renew=LEASE_RENEW,
        retry=LEASE_RETRY,
    )
