"""Real flannel, real plugins, by the configuration the network operator makes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path

import pytest
from flannel_nodes import add_pod, flannel, nodes
from real_api import RealApi

from falsework.kube.client import Object
from falsework.kube.resources import NODES
from falsework.machines import namespaces
from falsework.manifests.objects import named
from falsework.operators.network.cni_config import cni_config, subnets_of
from falsework.operators.network.flannel import net_conf
from falsework.operators.network.links import mtu_of
from falsework.operators.network.settings import settings_of
from falsework.process import run
from falsework.release.inventory import Release

PATIENCE = 60.0
PORT = 5005
HEADERS = 28
"""Bytes of IP and UDP."""
IP_MTU_DISCOVER = 10
IP_PMTUDISC_DO = 2
SUBNETS = {"flannel-a": "10.244.2.0/24", "flannel-b": "10.244.3.0/24"}


@pytest.mark.parametrize(("backend", "mtu"), [("vxlan", 1450), ("host-gw", 1500)])
def test_pods_of_two_nodes_reach_each_other(
    real_api: RealApi, release: Release, programs: Path, tmp_path: Path, backend: str, mtu: int
) -> None:
    for name in ("flanneld", "bridge", "host-local"):
        release.install(name, programs)
    client = real_api.client()
    with contextlib.ExitStack() as undo:
        members = undo.enter_context(nodes(real_api, f"fwt{os.getpid()}", *SUBNETS))
        for node in members:
            client.create(NODES, _registered(node.name))
            undo.callback(client.delete, NODES, node.name)
        place = namespaces.FOLDER / members[0].namespace
        settings = settings_of(
            {"spec": {"clusterNetwork": [{"cidr": "10.244.0.0/16"}]}},
            {"spec": {"defaultNetwork": {"type": "Flannel", "flannelConfig": {"backend": backend}}}},
            lambda: namespaces.inside(place, lambda: mtu_of(members[0].address)),
        )
        assert settings.mtu == mtu
        conf = tmp_path / "net-conf.json"
        conf.write_text(json.dumps(net_conf(settings)))

        addresses = []
        for node in members:
            ready = undo.enter_context(flannel(node, programs / "flanneld", conf, tmp_path))
            _wait_for(ready, tmp_path / f"{node.name}.log")
            assert f"FLANNEL_MTU={mtu}" in ready.read_text()
            subnets = subnets_of(client, node.name)
            assert subnets == [SUBNETS[node.name]]
            pod = f"{node.namespace}-pod"
            run(("ip", "netns", "add", pod))
            undo.callback(run, ("ip", "netns", "delete", pod))
            config = cni_config(subnets, settings.mtu)
            config["plugins"][0]["ipam"]["dataDir"] = str(tmp_path / "addresses")
            addresses.append(add_pod(node, pod, config, programs))

        first, second = (f"{node.namespace}-pod" for node in members)
        listener = _socket_in(second, undo)
        listener.bind((addresses[1], PORT))
        # As much as is promised goes through whole, and no more.
        whole = bytes(mtu - HEADERS)
        sender = _socket_in(first, undo)
        _send_until_heard(sender, (addresses[1], PORT), whole, listener)
        with pytest.raises(OSError, match="too long"):
            sender.sendto(whole + b"!", (addresses[1], PORT))


def _registered(name: str) -> Object:
    """As a kubelet does it and a controller manager completes it."""
    node = named("v1", "Node", name, spec={"podCIDR": SUBNETS[name], "podCIDRs": [SUBNETS[name]]})
    node["metadata"]["annotations"] = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    return node


def _wait_for(path: Path, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def _socket_in(namespace: str, undo: contextlib.ExitStack) -> socket.socket:
    """One that lets no packet be divided on its way."""
    place = namespaces.FOLDER / namespace
    made = undo.enter_context(namespaces.inside(place, lambda: socket.socket(type=socket.SOCK_DGRAM)))
    made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    made.settimeout(0.2)
    return made


def _send_until_heard(sender: socket.socket, target: tuple[str, int], what: bytes, listener: socket.socket) -> None:
    """The other node's routes come by a watch."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            sender.sendto(what, target)
            assert listener.recv(1 << 16) == what
        except OSError:
            assert time.monotonic() < deadline, "nothing arrived"
        else:
            return
