"""What people came for: pods talk across nodes, names resolve, routes answer, volumes stay."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from application import (
    PORT,
    apply,
    ask,
    deployment,
    image_of,
    namespace,
    pods_of,
    read_in,
    rolled_out,
    server_command,
    service,
)
from eventually import eventually
from lab_under_test import LabUnderTest
from raised_cluster import DOMAIN, Raised

SPACE = "shop"


@pytest.fixture(scope="module")
def shop(raised: Raised) -> Iterator[LabUnderTest]:
    """Two web servers on different workers, and a third pod that asks them."""
    lab = raised.lab
    image = image_of(lab)
    with namespace(lab, SPACE):
        apply(
            lab,
            deployment("front", SPACE, image, replicas=2),
            deployment("back", SPACE, image),
            service("front", SPACE),
            service("back", SPACE),
            route("front", {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}),
        )
        rolled_out(lab, SPACE, "front", "back")
        yield lab


def route(name: str, tls: dict[str, Any] | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"to": {"kind": "Service", "name": name}, "port": {"targetPort": "http"}}
    if tls:
        spec["tls"] = tls
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": spec,
    }


# The network


def test_deployments_on_different_nodes_talk_by_service_name(shop: LabUnderTest) -> None:
    fronts, backs = pods_of(shop, SPACE, "front"), pods_of(shop, SPACE, "back")
    assert len(set(fronts.values())) == 2
    (node,) = backs.values()
    assert any(other != node for other in fronts.values())
    for url in ("http://front", f"http://front.{SPACE}.svc.cluster.local"):
        answered = {ask(shop, SPACE, "back", url) for _ in range(12)}
        assert answered <= set(fronts)
    assert {ask(shop, SPACE, "front", "http://back")} == set(backs)


def test_large_answers_cross_nodes(shop: LabUnderTest) -> None:
    """A packet too large for the way between nodes would never arrive."""
    assert len(ask(shop, SPACE, "back", "http://front/300000")) == 300000
    inside = int(read_in(shop, SPACE, "deployment/back", "/sys/class/net/eth0/mtu"))
    between = int(shop.inside("worker-0", "cat", "/sys/class/net/flannel.1/mtu"))
    assert inside == between < int(shop.inside("worker-0", "cat", "/sys/class/net/eth0/mtu"))


def test_names_outside_the_cluster_are_asked_of_the_helper(shop: LabUnderTest) -> None:
    program = f"import socket; print(socket.gethostbyname('api.{DOMAIN}'))"
    words = ("kubectl", "exec", "-n", SPACE, "deployment/back", "--", "python3", "-c", program)
    assert shop.run(*words).strip() == str(shop.site.api_vip)


def test_a_host_port_answers_on_its_node_alone(shop: LabUnderTest) -> None:
    container = {
        "name": "it",
        "image": image_of(shop),
        "command": server_command(),
        "ports": [{"containerPort": PORT, "hostPort": 18080}],
    }
    spec = {"nodeName": f"worker-0.{DOMAIN}", "containers": [container]}
    apply(
        shop, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "at-the-door", "namespace": SPACE}, "spec": spec}
    )
    shop.run("kubectl", "wait", "-n", SPACE, "--for=condition=Ready", "pod/at-the-door", "--timeout=180s")
    address = shop.site.machine("worker-0").address
    assert shop.at_the_workstation(f"curl -s --retry 10 --retry-all-errors http://{address}:18080/") == "at-the-door"
    other = shop.site.machine("worker-1").address
    assert shop.at_the_workstation(f"curl -s --max-time 30 http://{other}:18080/ || echo $?").strip() == "7"
    shop.run("kubectl", "delete", "pod", "-n", SPACE, "at-the-door", "--wait=false")


# Through the API server


def test_logs_exec_copy_and_port_forward(shop: LabUnderTest, tmp_path: Path) -> None:
    (pod,) = pods_of(shop, SPACE, "back")
    ask(shop, SPACE, "front", "http://back/said-in-the-log")
    eventually(lambda: "asked /said-in-the-log" in shop.run("kubectl", "logs", "-n", SPACE, pod))
    (tmp_path / "letter").write_text("for the pod")
    shop.run("kubectl", "cp", str(tmp_path / "letter"), f"{SPACE}/{pod}:/tmp/letter")
    assert read_in(shop, SPACE, f"pod/{pod}", "/tmp/letter") == "for the pod"
    shop.run("kubectl", "cp", f"{SPACE}/{pod}:/tmp/letter", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "for the pod"
    with forwarded(shop, pod) as port:
        assert shop.at_the_workstation(f"curl -s http://127.0.0.1:{port}/") == pod


@contextlib.contextmanager
def forwarded(lab: LabUnderTest, pod: str) -> Iterator[int]:
    command = lab.command("kubectl", "port-forward", "-n", SPACE, f"pod/{pod}", f":{PORT}")
    with subprocess.Popen(command, env=lab.environment(), stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout is not None
            said = client.stdout.readline()
            found = re.search(r"127\.0\.0\.1:(\d+)", said)
            assert found, said
            yield int(found[1])
        finally:
            client.terminate()


# Routes


def test_a_route_answers_over_https_with_the_right_certificate(shop: LabUnderTest, tmp_path: Path) -> None:
    host = f"front-{SPACE}.apps.{DOMAIN}"
    authority = tmp_path / "ca.crt"
    path = r"jsonpath={.data.ca-bundle\.crt}"
    authority.write_text(
        shop.run("kubectl", "get", "cm", "-n", "openshift-config-managed", "default-ingress-cert", "-o", path)
    )
    again = "--retry 20 --retry-delay 1 --retry-all-errors --fail"
    answered = shop.at_the_workstation(f"curl -s {again} --cacert {authority} https://{host}/")
    assert answered in pods_of(shop, SPACE, "front")
    moved = shop.at_the_workstation(f"curl -s -o /dev/null -w '%{{http_code}} %{{redirect_url}}' http://{host}/")
    assert moved == f"302 https://{host}/"
    # Its status may be told a moment after it is served.
    eventually(lambda: "status" in shop.found("routes", "-n", SPACE)[0])
    (listed,) = shop.found("routes", "-n", SPACE)
    assert listed["spec"]["host"] == host
    (entry,) = listed["status"]["ingress"]
    assert [(one["type"], one["status"]) for one in entry["conditions"]] == [("Admitted", "True")]
    assert shop.at_the_workstation(f"dig +short {host}").strip() == str(shop.site.ingress_vip)


def test_an_ingress_answers_too(shop: LabUnderTest) -> None:
    host = f"plain.apps.{DOMAIN}"
    backend = {"service": {"name": "back", "port": {"name": "http"}}}
    rules = [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    body = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "plain", "namespace": SPACE}}
    apply(shop, {**body, "spec": {"rules": rules}})
    again = "--retry 20 --retry-delay 1 --retry-all-errors --fail"
    assert shop.at_the_workstation(f"curl -s {again} http://{host}/") in pods_of(shop, SPACE, "back")


# Storage


def test_a_claim_survives_its_pod(shop: LabUnderTest) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "ledger", "namespace": SPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    container = {
        "name": "it",
        "image": image_of(shop),
        "command": ["/usr/bin/python3", "-uc", _NOTES],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "ledger"}}]
    kept = deployment("keeper", SPACE, "", replicas=1, containers=[container], volumes=volumes)
    apply(shop, claim, kept)
    rolled_out(shop, SPACE, "keeper")
    first = said_by(shop, "deployment/keeper", lines=1)
    assert len(first) == 1
    (before,) = pods_of(shop, SPACE, "keeper")
    shop.run("kubectl", "delete", "pod", "-n", SPACE, before, "--grace-period=1")
    rolled_out(shop, SPACE, "keeper")
    after = said_by(shop, "deployment/keeper", lines=2)
    assert after[0] == first[0]
    (volume,) = [pv for pv in shop.found("pv") if pv["spec"]["claimRef"]["namespace"] == SPACE]
    shop.run("kubectl", "delete", "-n", SPACE, "deployment/keeper", "pvc/ledger", "--wait=true")
    # Its data goes with it.
    shop.run("kubectl", "wait", "--for=delete", f"pv/{volume['metadata']['name']}", "--timeout=180s")


_NOTES = """
import pathlib, signal, time
notes = pathlib.Path("/data/notes")
with notes.open("a") as file:
    print(time.time_ns(), file=file)
print(notes.read_text())
signal.pause()
"""


def said_by(lab: LabUnderTest, what: str, lines: int) -> list[str]:
    def said() -> list[str]:
        return lab.run("kubectl", "logs", "-n", SPACE, what).split()

    eventually(lambda: len(said()) >= lines, said)
    return said()


# Masters that take work


def test_masters_can_be_made_schedulable(shop: LabUnderTest) -> None:
    def edit(value: str) -> None:
        patch = f'{{"spec":{{"mastersSchedulable":{value}}}}}'
        shop.at_the_workstation(f"oc patch schedulers.config.openshift.io cluster --type=merge -p '{patch}'")

    def take_work(count: int) -> bool:
        """Whether this many nodes have the role, and no other is without a taint."""
        nodes = shop.found("nodes")
        role = [node for node in nodes if "node-role.kubernetes.io/worker" in node["metadata"]["labels"]]
        tainted = [[taint["effect"] for taint in node["spec"].get("taints", ())] for node in nodes if node not in role]
        free = not any(node["spec"].get("taints") for node in role)
        return len(role) == count and free and all(taints == ["NoSchedule"] for taints in tainted)

    def nodes() -> object:
        return shop.found("nodes")

    eventually(lambda: take_work(2), nodes)
    edit("true")
    try:
        eventually(lambda: take_work(5), nodes)
        assert (
            shop.at_the_workstation("oc get nodes --no-headers | grep -c 'control-plane,master,worker'").strip() == "3"
        )
    finally:
        edit("false")
    eventually(lambda: take_work(2), nodes)
