"""A small operator of static pods for tests. Its patience is short, its inputs are whatever the test writes."""

from __future__ import annotations

import sys

from falsework.kube.resources import KUBE_SCHEDULERS
from falsework.manifests.objects import Manifests
from falsework.manifests.static_pod import node_rules, operand_rules
from falsework.manifests.workload import Workload, operator_manifests
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.controllers import static_pod_controllers
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
    patience=2.0,
)


def manifests(version: str) -> Manifests:
    workload = Workload(
        prefix="0000_25_kube-scheduler",
        name=NAME,
        namespace=NAMESPACE,
        entry_point=NAME,
        port=PORT,
        version=version,
        image="registry.example/falsework:1",
        cluster_rules=node_rules(),
        roles={OPERAND.namespace: operand_rules()},
    )
    return operator_manifests(workload, "kubeschedulers")


def build(program: Program) -> None:
    static_pod_controllers(program, OPERAND)


if __name__ == "__main__":
    sys.exit(operator_main(NAME, NAMESPACE, sys.argv[1:], build, port=PORT, resource=KUBE_SCHEDULERS))
