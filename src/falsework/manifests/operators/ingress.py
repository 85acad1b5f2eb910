"""The ingress operator, and what its routers may do, which it only runs."""

from __future__ import annotations

from collections.abc import Mapping

from falsework.manifests.objects import RBAC, Manifests, Object, cluster_role_binding, named, service_account
from falsework.manifests.workload import READ, Workload, core, operator_manifests, read_config, rule

NAMESPACE = "openshift-ingress-operator"
NAME = "ingress-operator"
PORT = 9110
CONTROLLER = "default"
"""The IngressController there is."""
ROUTER_NAMESPACE = "openshift-ingress"
ROUTER = "router"
"""The service account of its pods."""
TRUST_NAMESPACE = "openshift-config-managed"
INGRESS_CLASS = "openshift-default"
INGRESS_CONTROLLER = "openshift.io/ingress-to-route"
"""What Ingresses of that class are served by."""

_PREFIX = "0000_50_ingress"
_ROUTER_ROLE = "openshift-ingress-router"
_KEEP = (*READ, "create", "patch")


def manifests(version: str, images: Mapping[str, str]) -> Manifests:
    operator = Workload(
        prefix=_PREFIX,
        name=NAME,
        namespace=NAMESPACE,
        port=PORT,
        version=version,
        image=images["falsework"],
        images={name: images[name] for name in ("falsework", "haproxy")},
        cluster_rules=[
            read_config("ingresses"),
            core("nodes", READ),
            # Ingresses name Secrets by name alone: any namespace may have one, at any time.
            core(("secrets", "services"), READ),
            rule("networking.k8s.io", ("ingresses", "ingressclasses"), READ),
            rule("networking.k8s.io", "ingresses/status", ("update",)),
            rule("route.openshift.io", "routes", (*_KEEP, "delete")),
        ],
        roles={
            NAMESPACE: [core("secrets", _KEEP)],
            ROUTER_NAMESPACE: [
                rule("apps", "deployments", _KEEP),
                rule("policy", "poddisruptionbudgets", _KEEP),
                core(("secrets", "services"), _KEEP),
            ],
            TRUST_NAMESPACE: [core("configmaps", _KEEP)],
        },
    )
    result = operator_manifests(operator, "ingresscontrollers", object_name=CONTROLLER)
    result[f"{_PREFIX}_03_rbac.yaml"] += router_rights()
    return {**result, f"{_PREFIX}_05_ingressclass.yaml": [_ingress_class()]}


def router_rights() -> list[Object]:
    """It reads where pods are and says what it serves. Secrets it sees are those beside it alone."""
    subject = service_account(ROUTER, ROUTER_NAMESPACE)
    rules = [
        rule("route.openshift.io", "routes", (*READ, "patch")),
        rule("route.openshift.io", "routes/status", ("update",)),
        rule("discovery.k8s.io", "endpointslices", READ),
    ]
    role_ref = {"apiGroup": RBAC, "kind": "Role", "name": ROUTER}
    return [
        named("v1", "ServiceAccount", ROUTER, ROUTER_NAMESPACE),
        named(f"{RBAC}/v1", "ClusterRole", _ROUTER_ROLE, rules=rules),
        cluster_role_binding(_ROUTER_ROLE, _ROUTER_ROLE, subject),
        named(f"{RBAC}/v1", "Role", ROUTER, ROUTER_NAMESPACE, rules=[core("secrets", READ)]),
        named(f"{RBAC}/v1", "RoleBinding", ROUTER, ROUTER_NAMESPACE, roleRef=role_ref, subjects=[subject]),
    ]


def _ingress_class() -> Object:
    parameters = {
        "apiGroup": "operator.openshift.io",
        "kind": "IngressController",
        "name": CONTROLLER,
        "namespace": NAMESPACE,
        "scope": "Namespace",
    }
    spec = {"controller": INGRESS_CONTROLLER, "parameters": parameters}
    return named("networking.k8s.io/v1", "IngressClass", INGRESS_CLASS, spec=spec)
