"""The ingress operator as a program."""

from __future__ import annotations

from falsework.kube.resources import INGRESS_CONTROLLERS
from falsework.manifests.operators.ingress import CONTROLLER, NAME, NAMESPACE, PORT
from falsework.operators.ingress.certificate_controller import CertificateController
from falsework.operators.ingress.ingress_controller import IngressController
from falsework.operators.ingress.router_controller import RouterController
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program

_RESYNC = 600.0


def main(words: list[str]) -> int:
    return operator_main(
        NAME,
        NAMESPACE,
        words,
        _build,
        port=PORT,
        resource=INGRESS_CONTROLLERS,
        object_name=CONTROLLER,
        object_namespace=NAMESPACE,
    )


def _build(program: Program) -> None:
    routers = RouterController(program)
    program.add(Controller("RouterController", routers.sync, routers.wakes, resync=_RESYNC))
    certificates = CertificateController(program)
    program.add(Controller("CertificateController", certificates.sync, certificates.wakes, resync=_RESYNC))
    ingresses = IngressController(program)
    program.add(Controller("IngressToRouteController", ingresses.sync, ingresses.wakes, resync=_RESYNC))
