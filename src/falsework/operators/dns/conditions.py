"""What DNS `default` says of itself, in the words of OpenShift's operator."""

from __future__ import annotations

import math

from falsework.kube.client import Object
from falsework.operators.runtime.conditions import Condition, condition
from falsework.operators.runtime.rollouts import RollOut, roll_out_of

_Fault = tuple[str, str]
"""Reason and message."""

_NO_SERVICE: _Fault = ("NoService", "No IP address is assigned to the DNS service.")
_MAY_BE_MISSING = 0.1
"""Of the nodes: more without a pod of their own is not a roll-out any more."""


def conditions_of(daemon_set: Object | None, address: str) -> list[Condition]:
    """`address` is the Service's, or empty."""
    rolled = roll_out_of(daemon_set)
    unserved = [] if address else [_NO_SERVICE]
    return [
        _said(
            "Available",
            [*_unavailable(daemon_set, rolled), *unserved],
            "The DNS daemonset has available pods, and the DNS service has a cluster IP address.",
        ),
        _said(
            "Progressing",
            [*_under_way(daemon_set, rolled), *unserved],
            "All DNS pods are available, and the DNS service has a cluster IP address.",
        ),
        _said(
            "Degraded",
            [*_degraded(daemon_set, rolled), *unserved],
            "Enough DNS pods are available, and the DNS service has a cluster IP address.",
        ),
    ]


def _said(kind: str, faults: list[_Fault], good: str) -> Condition:
    if not faults:
        return condition(kind, kind == "Available", "AsExpected", good)
    reasons, messages = zip(*faults, strict=True)
    return condition(kind, kind != "Available", "".join(reasons), "\n".join(messages))


def _unavailable(daemon_set: Object | None, rolled: RollOut) -> list[_Fault]:
    if daemon_set is None:
        return [("NoDaemonSet", "The DNS daemonset does not exist.")]
    return [] if rolled.available else [("NoDaemonSetPods", "The DNS daemonset has no pods available.")]


def _under_way(daemon_set: Object | None, rolled: RollOut) -> list[_Fault]:
    if daemon_set is None:
        return [("Reconciling", "The DNS daemonset does not exist.")]
    if rolled.available != rolled.wanted:
        return [("Reconciling", f"Have {rolled.available} available DNS pods, want {rolled.wanted}.")]
    if rolled.is_complete:
        return []
    return [("Reconciling", f"Have {rolled.updated} up-to-date DNS pods, want {rolled.wanted}.")]


def _degraded(daemon_set: Object | None, rolled: RollOut) -> list[_Fault]:
    if daemon_set is None:
        return [("NoDNSDaemonSet", "The DNS daemonset does not exist.")]
    if rolled.wanted == 0:
        why = "No DNS pods are desired; this could mean all nodes are tainted or unschedulable."
        return [("NoDNSPodsDesired", why)]
    if rolled.available == 0:
        return [("NoDNSPodsAvailable", "No DNS pods are available.")]
    missing, most = rolled.wanted - rolled.available, math.ceil(rolled.wanted * _MAY_BE_MISSING)
    if missing > most:
        why = f"Too many DNS pods are unavailable ({missing} > {most} max unavailable)."
        return [("MaxUnavailableDNSPodsExceeded", why)]
    return []
