"""Something to run in a cluster under test: a web server that says which pod answers, and a pod to ask from.

Both run in Falsework's own image, which has Python and is on every node: nothing has to be pulled.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from lab_under_test import LabUnderTest

PORT = 8080

_SERVER = """
import http.server, os, signal, sys, threading
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = ("x" * int(self.path[1:]) if self.path[1:].isdigit() else os.environ["HOSTNAME"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        print("asked", self.path, flush=True)
server = http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Answer)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
"""
_ASK = """
import sys, time, urllib.request
deadline = time.monotonic() + 60
while True:
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.2)
"""


def image_of(lab: LabUnderTest) -> str:
    path = "jsonpath={.spec.template.spec.containers[0].image}"
    return lab.run("kubectl", "get", "deployment", "-n", "openshift-etcd-operator", "etcd-operator", "-o", path)


def apply(lab: LabUnderTest, *objects: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    done = subprocess.run(
        lab.command("kubectl", "apply", "-f", "-"),
        env=lab.environment(),
        input=json.dumps(listed),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def namespace(lab: LabUnderTest, name: str) -> Iterator[str]:
    """With all that is in it gone at the end."""
    lab.run("kubectl", "create", "namespace", name)
    try:
        yield name
    finally:
        lab.run("kubectl", "delete", "namespace", name, "--wait=true", limit=180)


def server_command(port: int = PORT) -> list[str]:
    return ["/usr/bin/python3", "-c", _SERVER, str(port)]


def deployment(name: str, space: str, image: str, replicas: int = 1, **pod: Any) -> dict[str, Any]:
    """Web servers that are sent nothing new for a while before they go, on as many nodes as there are replicas."""
    labels = {"app": name}
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    container = {
        "name": "it",
        "image": image,
        "command": server_command(),
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1, "timeoutSeconds": 10},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    }
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"affinity": apart, "containers": [container], **pod}},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": space}, "spec": spec}


def service(name: str, space: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": space}, "spec": spec}


def rolled_out(lab: LabUnderTest, space: str, *names: str) -> None:
    for name in names:
        lab.run("kubectl", "rollout", "status", "-n", space, f"deployment/{name}", "--timeout=120s", limit=150)


def ask(lab: LabUnderTest, space: str, source: str, url: str) -> str:
    """From a pod of a Deployment. A node may hear of a Service a moment after its pods are ready."""
    words = ("kubectl", "exec", "-n", space, f"deployment/{source}", "--", "python3", "-c", _ASK, url)
    return lab.run(*words).strip()


def read_in(lab: LabUnderTest, space: str, what: str, path: str) -> str:
    """A file of a pod. Its image has Python, and none of the small programs one is used to."""
    program = "import pathlib, sys; print(pathlib.Path(sys.argv[1]).read_text(), end='')"
    return lab.run("kubectl", "exec", "-n", space, what, "--", "python3", "-c", program, path)


def pods_of(lab: LabUnderTest, space: str, name: str) -> dict[str, str]:
    """Pod → the node it runs on."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in lab.found("pods", "-n", space, "-l", f"app={name}")
        if "deletionTimestamp" not in pod["metadata"]
    }
