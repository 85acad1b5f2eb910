"""Static pods of the masters that are clients of the API: they come through the load balancer, so that each works as
long as any API server does."""

from __future__ import annotations

import json

from falsework.control_plane.flags import Flags
from falsework.control_plane.kubeconfig_of_files import kubeconfig_of_files
from falsework.control_plane.pods import Container, Pod, alive, command, pod, ready, started
from falsework.control_plane.revision_files import bundle_of, mount, pair_of_secret

SERVER_CA = "serviceaccount-ca"
"""The ConfigMap with the API servers' signers."""
KUBECONFIG_KEY = "kubeconfig"


def api_client_pod(
    namespace: str,
    program: str,
    pod_name: str,
    image: str,
    told: Flags,
    port: int,
    labels: dict[str, str],
    cpu: str,
    memory: str,
) -> Pod:
    """`port` tells on the node's loopback how it is."""
    probes = (probe("/healthz", port, "HTTPS") for probe in (started, ready, alive))
    container = Container(
        program,
        image,
        command(program, told),
        (mount(program),),
        cpu,
        memory,
        probes={name: settings for probe in probes for name, settings in probe.items()},
    )
    return pod(namespace, pod_name, container, labels=labels)


def kubeconfig(user: str, server: str, client: str) -> dict[str, str]:
    """The content of its ConfigMap; `client` is the Secret with its certificate."""
    content = kubeconfig_of_files("lb-int", server, bundle_of(SERVER_CA), user, pair_of_secret(client))
    return {KUBECONFIG_KEY: json.dumps(content, indent=1)}
