"""A router's own program, in a pod with HAProxy."""

from __future__ import annotations

import argparse
from pathlib import Path

from falsework.operators.router.admission import Router
from falsework.operators.router.config import Place, waiting
from falsework.operators.router.controller import RouterController
from falsework.operators.router.proxy import Proxy
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program

NAMESPACE = "openshift-ingress"
PORT = 9114
_RESYNC = 600.0


def main(words: list[str]) -> int:
    return operator_main(
        "router", NAMESPACE, words, _build, port=PORT, resource=None, leads=False, arguments=_arguments
    )


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="default", help="of the IngressController it belongs to")
    parser.add_argument("--domain", required=True, help="under which routes get a host that name none")
    parser.add_argument("--certificate", required=True, help="the Secret with the certificate of this domain")
    parser.add_argument("--folder", type=Path, required=True, help="what it has in common with HAProxy")
    parser.add_argument("--http-port", type=int, default=80)
    parser.add_argument("--https-port", type=int, default=443)
    parser.add_argument("--health-port", type=int, default=1936)


def _build(program: Program) -> None:
    """HAProxy may be started as soon as this program answers: there is something for it to start with by then."""
    options = program.options
    place = Place(options.folder, options.http_port, options.https_port, options.health_port)
    proxy = Proxy(place)
    proxy.prepare(waiting(place))
    controller = RouterController(program, Router(options.name, options.domain), place, proxy, options.certificate)
    program.add(Controller("RouterController", controller.sync, controller.wakes, resync=_RESYNC))
