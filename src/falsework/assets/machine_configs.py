"""Machine configs: the parts a role's config is made of."""

from __future__ import annotations

from falsework.assets import node
from falsework.assets.graph import Files
from falsework.assets.ignition import File, config
from falsework.assets.node import NodeFacts
from falsework.assets.objects import Object, machine_config
from falsework.assets.rendered_config import API, role_of
from falsework.assets.serialize import documents_in
from falsework.site.model import Role


def built_in(
    role: Role, facts: NodeFacts, client_ca: bytes, registry_ca: bytes, pull_secret: str | None
) -> list[Object]:
    guard_rules, guard = node.pod_guard()
    base = [
        guard_rules,
        node.api_server_url(facts.api_int_host),
        File("/etc/sysctl.d/90-forwarding.conf", b"net.ipv4.ip_forward = 1\n"),
        File("/etc/kubernetes/kube-proxy.conf", node.kube_proxy_config(facts.cluster_cidrs)),
    ]
    if pull_secret:
        base.append(File("/var/lib/kubelet/config.json", pull_secret.encode(), 0o600))
    kubelet_files = node.kubelet_files(node.node_kubelet_config(role, facts.dns_address), client_ca)
    runtime_files = node.runtime_files(facts.sandbox_image, facts.registry_url, registry_ca)
    return [
        machine_config(f"00-{role}", role, config(files=base, units=[*node.kube_proxy_units(), guard])),
        machine_config(
            f"01-{role}-container-runtime",
            role,
            config(files=runtime_files, units=[node.containerd_unit()]),
        ),
        machine_config(
            f"01-{role}-kubelet",
            role,
            config(
                files=kubelet_files,
                units=[node.kubelet_unit(standalone=False), node.first_join_unit(facts.api_int_host)],
            ),
        ),
    ]


def of_role(role: Role, manifests: Files) -> list[Object]:
    """The machine configs for a role among manifests: ours, and those a person added."""
    return [
        document
        for path, content in manifests.items()
        for document in documents_in(path, content)
        if document.get("apiVersion") == API and document["kind"] == "MachineConfig" and role_of(path, document) == role
    ]
