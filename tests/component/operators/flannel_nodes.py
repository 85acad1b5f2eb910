"""Two nodes without machines: namespaces with links between them, flannel in each, pods made by the CNI plugins."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from real_api import RealApi

from falsework.kube.client import Object
from falsework.machines import namespaces
from falsework.process import run


@dataclass(frozen=True)
class Node:
    name: str
    address: str
    namespace: str
    kubeconfig: Path


@contextlib.contextmanager
def nodes(api: RealApi, prefix: str, *names: str) -> Iterator[list[Node]]:
    """Neighbours on one link. Each reaches the API at its own loopback address, as if it were next door."""
    port = int(api.url.rpartition(":")[2])
    with contextlib.ExitStack() as undo:
        made = []
        middle = f"{prefix}-switch"
        _namespace(middle, undo)
        run(("ip", "-n", middle, "link", "add", "switch", "up", "type", "bridge"))
        for number, name in enumerate(names, 1):
            namespace, address = f"{prefix}-{number}", f"192.0.2.{number}"
            _namespace(namespace, undo)
            run(
                ("ip", "-n", namespace, "link", "add", "eth0", "type", "veth", "peer", f"port{number}", "netns", middle)
            )
            run(("ip", "-n", middle, "link", "set", f"port{number}", "up", "master", "switch"))
            run(("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0"))
            run(("ip", "-n", namespace, "link", "set", "eth0", "up"))
            _api_next_door(namespace, port, undo)
            made.append(Node(name, address, namespace, api.kubeconfig))
        yield made


def _namespace(name: str, undo: contextlib.ExitStack) -> None:
    run(("ip", "netns", "add", name))
    undo.callback(run, ("ip", "netns", "delete", name))
    run(("ip", "-n", name, "link", "set", "lo", "up"))


def _api_next_door(namespace: str, port: int, undo: contextlib.ExitStack) -> None:
    place = namespaces.FOLDER / namespace
    server = namespaces.inside(place, lambda: socket.create_server(("127.0.0.1", port)))
    undo.callback(server.close)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = server.accept()
                there = socket.create_connection(("127.0.0.1", port))
                for source, target in ((here, there), (there, here)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def flannel(node: Node, flanneld: Path, net_conf: Path, folder: Path) -> Iterator[Path]:
    """Its daemon at work; gives back the file it writes when it is ready."""
    subnet_file = folder / f"{node.name}.env"
    argv = [
        *("ip", "netns", "exec", node.namespace, "setpriv", "--pdeathsig", "KILL", "--", str(flanneld)),
        *("--kube-subnet-mgr", "--ip-masq", f"--iface={node.address}", "--set-node-network-unavailable=false"),
        f"--kubeconfig-file={node.kubeconfig}",
        f"--net-config-path={net_conf}",
        f"--subnet-file={subnet_file}",
    ]
    with (folder / f"{node.name}.log").open("ab") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, "NODE_NAME": node.name})
    try:
        yield subnet_file
    finally:
        child.kill()
        child.wait()


def add_pod(node: Node, pod: str, config: Object, plugins: Path) -> str:
    """A namespace with the link the first plugin of `config` gives it; its address."""
    plugin = {**config["plugins"][0], "cniVersion": config["cniVersion"], "name": f"{config['name']}-{node.namespace}"}
    env = {
        **os.environ,
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": pod,
        "CNI_NETNS": str(namespaces.FOLDER / pod),
        "CNI_IFNAME": "eth0",
        "CNI_PATH": str(plugins),
    }
    argv = ("ip", "netns", "exec", node.namespace, str(plugins / plugin["type"]))
    done = subprocess.run(argv, input=json.dumps(plugin).encode(), env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(json.loads(done.stdout)["ips"][0]["address"]).partition("/")[0]
