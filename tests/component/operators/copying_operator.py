"""A small operator for tests: ConfigMap `output` is to say what ConfigMap `input` says.

`mistake`, `refused` and `slow` are texts it does not get along with, each in its own way.
"""

from __future__ import annotations

import sys
import time

from falsework.errors import FalseworkError
from falsework.kube.client import APPLY, WatchEvent
from falsework.kube.resources import CONFIG_MAPS, Resource
from falsework.manifests.objects import Manifests, named
from falsework.manifests.workload import Workload, core, operator_manifests
from falsework.operators.runtime import main as runtime
from falsework.operators.runtime.conditions import condition
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.program import Program

NAME, NAMESPACE = "console-operator", "openshift-console-operator"
CONSOLES = Resource("operator.openshift.io", "v1", "consoles", False)
PORT = 9199


def manifests(version: str) -> Manifests:
    workload = Workload(
        prefix="0000_50_console",
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image="registry.example/falsework:1",
        images={"console": "registry.example/console:1"},
        roles={NAMESPACE: [core("configmaps", ("get", "list", "watch", "create", "patch"))]},
    )
    return operator_manifests(workload, "consoles")


def build(program: Program) -> None:
    inputs = program.follow(CONFIG_MAPS, NAMESPACE)
    assert program.follow(CONFIG_MAPS, NAMESPACE) is inputs
    status = program.status
    assert status is not None

    def sync(_: str) -> float | None:
        found = inputs.get("input", NAMESPACE)
        text = found["data"]["text"] if found else ""
        match text:
            case "mistake":
                raise ZeroDivisionError("do not say this: s3cret")
            case "refused":
                raise FalseworkError("the input is refused", cause="it says so")
            case "slow":
                time.sleep(1.5)
        output = named("v1", "ConfigMap", "output", NAMESPACE, data={"text": text})
        if text:
            program.client.patch(CONFIG_MAPS, "output", output, NAMESPACE, kind=APPLY)
            program.events.normal("Copied", f"Copied {text}")
        status.set(condition("OutputAvailable", bool(text), "Copied" if text else "NoInput"))
        status.set(condition("OutputProgressing", False))
        return None

    program.add(Controller("CopyController", sync, [(inputs, _input_only)]))


def _input_only(event: WatchEvent) -> str | None:
    return "" if event.object["metadata"]["name"] == "input" else None


if __name__ == "__main__":
    # Tests do not wait as long as operators may.
    runtime.LEASE_RENEW = 1.0
    sys.exit(runtime.operator_main(NAME, NAMESPACE, sys.argv[1:], build, port=PORT, resource=CONSOLES))
