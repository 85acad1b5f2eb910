"""The kube-apiserver operator as a program."""

from __future__ import annotations

from falsework.control_plane.flags import API_PORT
from falsework.kube.resources import CONFIG_MAPS, KUBE_API_SERVERS
from falsework.operators.certificates.controller import certificate_controller
from falsework.operators.kube_apiserver import pod
from falsework.operators.kube_apiserver.certificates import CSR_CA, TABLE
from falsework.operators.kube_apiserver.target import Target
from falsework.operators.runtime.controller import always
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.controllers import static_pod_controllers
from falsework.operators.static_pod.guard import Guard
from falsework.operators.static_pod.operand import Operand

PORT = 9102
OPERAND = Operand(
    name=pod.NAME,
    pod_name=pod.NAME,
    namespace=pod.NAMESPACE,
    resource=KUBE_API_SERVERS,
    config_maps=pod.CONFIG_MAPS,
    secrets=pod.SECRETS,
    # The load balancer must have seen one come back before the next one goes.
    settle=5.0,
)


def main(words: list[str]) -> int:
    name = "kube-apiserver-operator"
    return operator_main(name, f"openshift-{name}", words, build, port=PORT, resource=OPERAND.resource)


def build(program: Program) -> None:
    program.add(Target(program).controller())
    static_pod_controllers(program, OPERAND, guard=Guard(program.images["pause"], API_PORT, "/readyz", "HTTPS"))
    csr_ca = program.follow(CONFIG_MAPS, CSR_CA.namespace, fields=f"metadata.name={CSR_CA.name}")
    program.add(certificate_controller(program, TABLE, (csr_ca, always)))
