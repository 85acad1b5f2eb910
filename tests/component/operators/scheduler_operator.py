"""A small operator of static pods for tests. Its patience and its inputs are whatever the test says."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from falsework.kube.resources import KUBE_SCHEDULERS
from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod_rights import MASTERS, for_guards, in_operand_namespace
from falsework.manifests.workload import Workload, operator_manifests
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.controllers import static_pod_controllers
from falsework.operators.static_pod.guard import Guard
from falsework.operators.static_pod.operand import Operand

NAME, NAMESPACE, PORT = "kube-scheduler-operator", "openshift-kube-scheduler-operator", 9104
OPERAND = Operand(
    "kube-scheduler",
    "openshift-kube-scheduler",
    "openshift-kube-scheduler",
    KUBE_SCHEDULERS,
    ("config",),
    ("certificates",),
    settle=0.3,
)


def manifests(version: str) -> Manifests:
    workload = Workload(
        prefix="0000_25_kube-scheduler",
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image="registry.example/falsework:1",
        cluster_rules=[MASTERS],
        roles={OPERAND.namespace: [*in_operand_namespace(), *for_guards()]},
    )
    return operator_manifests(workload, "kubeschedulers")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--patience", type=float)


def build(program: Program) -> None:
    guard = Guard("registry.example/pause:1", 10259, "/healthz", "HTTPS", after=0.5)
    static_pod_controllers(program, replace(OPERAND, patience=program.options.patience), guard=guard)


if __name__ == "__main__":
    sys.exit(
        operator_main(NAME, NAMESPACE, sys.argv[1:], build, port=PORT, resource=KUBE_SCHEDULERS, arguments=arguments)
    )
