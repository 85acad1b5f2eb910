"""On a node: tells the container runtime how pods get their links. From then on the node is Ready.

The address range is the one the API has given the node. The plugins are part of the OS image: nothing is waited for
but that range.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import write_file
from falsework.kube.client import ApiError, Client, Object, Unreachable
from falsework.kube.resources import NODES
from falsework.operators.network.links import mtu_of

FILE = "10-flannel.conflist"
_VERSION = "1.0.0"
_WATCH_SECONDS = 300


def cni_config(subnets: Sequence[str], mtu: int) -> Object:
    """A bridge of the node, with addresses out of its own range.

    Flannel hides pods behind their node towards the outside, so the bridge does not. Who has which address is kept in
    memory alone: after a restart of the machine there are no pods.
    """
    addresses = {"type": "host-local", "dataDir": "/run/cni/networks", "ranges": [[{"subnet": one}] for one in subnets]}
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isDefaultGateway": True,
        "hairpinMode": True,
        # A node that was taken out and came back has another range.
        "forceAddress": True,
        "mtu": mtu,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": _VERSION, "name": "cbr0", "plugins": [bridge, ports]}


def write_config(folder: Path, config: Object) -> bool:
    """Whether it was not so already: the runtime reads again whatever is written."""
    path, content = folder / FILE, json.dumps(config, indent=2).encode() + b"\n"
    if path.exists() and path.read_bytes() == content:
        return False
    write_file(path, content)
    return True


def subnets_of(client: Client, node: str) -> list[str]:
    """The node's ranges, as soon as the API has them."""
    while True:
        try:
            listed = client.list(NODES, fields=f"metadata.name={node}")
            for found in listed.items:
                if subnets := _subnets(found):
                    return subnets
            with client.watch(
                NODES, version=listed.version, fields=f"metadata.name={node}", seconds=_WATCH_SECONDS
            ) as watch:
                for event in watch:
                    if event.type != "DELETED" and (subnets := _subnets(event.object)):
                        return subnets
        except ApiError as error:
            if not error.is_gone:
                raise


def _subnets(node: Object) -> list[str]:
    return list(map(str, (node.get("spec") or {}).get("podCIDRs") or []))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="cni-config", description=__doc__)
    parser.add_argument("--mtu", type=int, required=True, help="of the pods' links")
    parser.add_argument("--link-mtu", type=int, required=True, help="what the node's own link must carry at least")
    parser.add_argument("--folder", type=Path, default=Path("/etc/cni/net.d"))
    options = parser.parse_args(words)
    try:
        node, address = os.environ["NODE_NAME"], os.environ["NODE_IP"]
        _check_link(address, options.link_mtu)
        subnets = subnets_of(Client.from_pod(), node)
        written = write_config(options.folder, cni_config(subnets, options.mtu))
        state = "written" if written else "as it was"
        print(f"Pods of {node} get addresses of {', '.join(subnets)}: {FILE} is {state}", file=sys.stderr)
    except (FalseworkError, Unreachable) as error:
        print(f"cni-config: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _check_link(address: str, needed: int) -> None:
    if (mtu := mtu_of(address)) < needed:
        raise FalseworkError(
            f"this node's link carries {mtu} bytes in a packet, and the cluster's network needs {needed}",
            cause="the cluster's MTU was decided for larger links",
            fix="raise the link's MTU, or set spec.defaultNetwork.flannelConfig.mtu of networks.operator lower",
        )
