"""The kube-controller-manager operator as a program."""

from __future__ import annotations

from falsework.kube.resources import KUBE_CONTROLLER_MANAGERS
from falsework.operators.api_client_target import api_client_target
from falsework.operators.kube_controller_manager import pod
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.controllers import static_pod_controllers
from falsework.operators.static_pod.operand import Operand

PORT = 9103
OPERAND = Operand(
    name=pod.NAME,
    pod_name=pod.NAME,
    namespace=pod.NAMESPACE,
    resource=KUBE_CONTROLLER_MANAGERS,
    config_maps=pod.CONFIG_MAPS,
    secrets=pod.SECRETS,
)


def main(words: list[str]) -> int:
    name = "kube-controller-manager-operator"
    return operator_main(name, f"openshift-{name}", words, build, port=PORT, resource=OPERAND.resource)


def build(program: Program) -> None:
    image = program.images[pod.NAME]
    program.add(api_client_target(program, OPERAND, pod.KUBECONFIG, pod.CLIENT, lambda facts: pod.pod(image, facts)))
    static_pod_controllers(program, OPERAND)
