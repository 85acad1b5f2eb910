"""The dns operator, and what CoreDNS may do, which it only runs."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import RBAC, Manifests, cluster_role_binding, named, service_account
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config, rule

NAMESPACE = "openshift-dns-operator"
NAME = "dns-operator"
PORT = 9109
OBJECT = "default"
"""The operator's own object: there could be more than one DNS."""
OPERAND_NAMESPACE = "openshift-dns"
ACCOUNT = "dns"
"""The service account of CoreDNS' pods."""

_PREFIX = "0000_70_dns"
_ROLE = "openshift-dns"


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    kept = (*READ, "create", "patch")
    operator = Workload(
        prefix=_PREFIX,
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={"coredns": images["coredns"]},
        cluster_rules=[read_config("networks", "infrastructures")],
        roles={OPERAND_NAMESPACE: [rule("apps", "daemonsets", kept), core(("configmaps", "services"), kept)]},
    )
    result = operator_manifests(operator, "dnses", object_name=OBJECT)
    result[f"{_PREFIX}_03_rbac.yaml"] += _coredns()
    return result


def _coredns() -> list[dict[str, object]]:
    """It answers for Services and what is behind them. A pod's name is made of its address: it looks at no pods."""
    follow = ("list", "watch")
    rules = [core(("namespaces", "services"), follow), rule("discovery.k8s.io", "endpointslices", follow)]
    return [
        named("v1", "ServiceAccount", ACCOUNT, OPERAND_NAMESPACE),
        named(f"{RBAC}/v1", "ClusterRole", _ROLE, rules=rules),
        cluster_role_binding(_ROLE, _ROLE, service_account(ACCOUNT, OPERAND_NAMESPACE)),
    ]
