"""The cluster's API, asked from the host: over a connection that is made in the lab's network."""

from __future__ import annotations

import socket

from falsework.kube.client import Client
from falsework.kube.connection import Patience
from falsework.lab.folder import NETWORK
from falsework.machines import namespaces
from falsework.machines.view import View


def lab_client(view: View, patience: Patience | None = None) -> Client:
    """As the administrator. The host's name server knows nothing of the lab, and need not: the site does."""
    view.require()
    network, address = view.lab.netns_path(NETWORK), str(view.site.api_vip)

    def connect(_: str, port: int, seconds: float) -> socket.socket:
        return namespaces.inside(network, lambda: socket.create_connection((address, port), seconds))

    return Client.from_kubeconfig(view.kubeconfig, connect=connect, patience=patience)
