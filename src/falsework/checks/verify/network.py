"""What clients meet on their way: names, load balancer, Machine Config Server, the cluster's DNS, routers, storage."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from falsework.checks.balancer import running_balancer
from falsework.checks.verify.bootkube_guide import config_server_answers
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed, skipped
from falsework.checks.verify.own import own
from falsework.checks.verify.said import short
from falsework.helper.balancer import Server, Status
from falsework.kube.cluster import is_true, told
from falsework.kube.resources import Resource
from falsework.site import ports
from falsework.site.model import Machine, Site
from falsework.site.records import dns_records

_KUBERNETES = "kubernetes.default.svc.cluster.local"
_NOBODY = "no-such-route"
"""A host below *.apps that nobody has."""
_REGISTRIES = Resource("imageregistry.operator.openshift.io", "v1", "configs", False)
_STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", False)
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def checks(facts: Facts) -> Iterator[Check]:
    site, helper = facts.site, facts.site.helper
    yield own(
        "network/records",
        f"dig @{helper.address} NAME",
        "api, api-int, *.apps and every machine have their addresses",
        lambda: _records(facts),
    )
    yield own(
        "network/balancer",
        "falsework balancer state",
        "every backend has all its servers",
        lambda: _balancer(facts),
        Place.HELPER,
        helper.name,
    )
    for role in ("master", "worker"):
        yield own(
            f"network/config-{role}",
            f"curl https://{site.api_int_host}:{ports.MACHINE_CONFIG_SERVER}/config/{role}",
            "403: a config is for machines of the site alone, and the workstation is none",
            lambda role=role: config_server_answers(facts, f"/config/{role}", 403),  # type: ignore[misc]
        )
    for machine in (facts.master, *site.workers[:1]):
        yield own(
            f"network/cluster-dns/{machine.name}",
            f"dig @{site.networking.dns_service_address} {_KUBERNETES}",
            f"{site.networking.api_service_address}",
            lambda machine=machine: _cluster_dns(facts, machine),  # type: ignore[misc]
            Place.MASTER if machine in site.masters else Place.WORKER,
            machine.name,
        )
    yield own(
        "network/ingress",
        f"curl https://{_NOBODY}.{site.apps_domain}",
        "503 over HTTPS from a router, with the certificate of *.apps",
        lambda: _ingress(facts),
    )
    yield own(
        "storage/registry",
        "oc get configs.imageregistry.operator.openshift.io cluster",
        "Removed, or Managed with its storage",
        lambda: _registry(facts),
    )
    yield own(
        "storage/class",
        "oc get storageclass",
        "one default StorageClass",
        lambda: _storage_class(facts),
    )


def _records(facts: Facts) -> Verdict:
    server, wrong, right = str(facts.site.helper.address), [], 0
    for record in dns_records(facts.standing):
        if record.kind != "A":
            continue
        name = record.name.replace("*", _NOBODY)
        found = facts.asker.address_of(server, name)
        if found == record.value:
            right += 1
        else:
            wrong.append(f"{name} is {found or 'unknown'}, not {record.value}")
    return failed(short("; ".join(wrong))) if wrong else passed(f"{right} names have their addresses")


def _balancer(facts: Facts) -> Verdict:
    site = facts.site
    if site.helper.address not in (site.api_vip, site.ingress_vip):
        return skipped("the site has a load balancer of its own")
    servers = running_balancer(facts.provider, site.helper.name).state()
    return balanced(servers, site, has_routers=facts.cluster.has_operator("ingress"))


def balanced(servers: list[Server], site: Site, *, has_routers: bool) -> Verdict:
    """Backups serve only while nobody else does. Routers are as many as somebody wants, one per machine at most."""
    wrong = []
    of_ingress = {server.backend for server in servers if server.backend.startswith("ingress")}
    for backend in dict.fromkeys(server.backend for server in servers):
        mine = [server for server in servers if server.backend == backend and not server.backup]
        up = [server for server in mine if server.status is Status.UP]
        if backend in of_ingress:
            if has_routers and not up:
                wrong.append(f"{backend} has no server that is up")
        else:
            missing = {machine.name for machine in site.masters} - {server.name for server in up}
            wrong += [f"{backend}: {name} is not up" for name in sorted(missing)]
    return failed(short("; ".join(wrong))) if wrong else passed(f"{_up(servers)} of {len(servers)} servers are up")


def _up(servers: list[Server]) -> int:
    return sum(server.status is Status.UP for server in servers)


def _cluster_dns(facts: Facts, machine: Machine) -> Verdict:
    """As a pod there would ask: through the Service, by whatever the node has for that."""
    if not facts.cluster.has_operator("dns"):
        return skipped("the cluster has no operator dns")
    networking = facts.site.networking
    found = facts.asker_on(machine).address_of(str(networking.dns_service_address), _KUBERNETES)
    wanted = str(networking.api_service_address)
    return passed(found) if found == wanted else failed(f"{found or 'no address'}, not {wanted}")


def _ingress(facts: Facts) -> Verdict:
    if not facts.cluster.has_operator("ingress"):
        return skipped("the cluster has no operator ingress")
    bundle = facts.cluster.config_map("default-ingress-cert", "openshift-config-managed") or {}
    if not bundle.get("ca-bundle.crt"):
        return failed("there is no ConfigMap openshift-config-managed/default-ingress-cert with an authority")
    name = f"{_NOBODY}.{facts.site.apps_domain}"
    with tempfile.NamedTemporaryFile("w", suffix=".crt") as trusted:
        trusted.write(bundle["ca-bundle.crt"])
        trusted.flush()
        status = facts.asker.status(str(facts.site.ingress_vip), ports.HTTPS, "/", Path(trusted.name), name)
    return passed(f"{status}, with a certificate for {name}") if status == 503 else failed(f"HTTP status {status}")


def _registry(facts: Facts) -> Verdict:
    operators = [body for body in facts.cluster.operators if body["metadata"]["name"] == "image-registry"]
    if not operators:
        return skipped("the cluster has no operator image-registry")
    config = facts.cluster.one(_REGISTRIES, "cluster")
    state = ((config or {}).get("spec") or {}).get("managementState")
    if config is None or not is_true(operators[0], "Available"):
        return failed(short(f"managementState {state}; {told(operators[0], 'Available')}"))
    return passed(short(f"{state}; {told(operators[0], 'Available')}"))


def _storage_class(facts: Facts) -> Verdict:
    if not facts.cluster.has_operator("storage"):
        return skipped("the cluster has no operator storage")
    names = [
        body["metadata"]["name"]
        for body in facts.cluster.all(_STORAGE_CLASSES)
        if (body["metadata"].get("annotations") or {}).get(_IS_DEFAULT) == "true"
    ]
    return (
        passed(f"{names[0]} is the default") if len(names) == 1 else failed(f"defaults: {', '.join(names) or 'none'}")
    )
