"""The ingress operator against a real API."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.x509 import Certificate
from operator_process import POD, OperatorProcess, account_of, operator_process, until
from real_api import RealApi

from falsework.assets.pki import (
    Pair,
    Subject,
    Use,
    Validity,
    certificate_pem,
    is_signed_by,
    issue,
    load_certificates,
)
from falsework.kube.client import APPLY, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESS_CLASSES,
    INGRESS_CONTROLLERS,
    KUBE_INGRESSES,
    POD_DISRUPTION_BUDGETS,
    ROUTES,
    SECRETS,
    SERVICES,
)
from falsework.manifests.cluster_operators import cluster_operators
from falsework.manifests.objects import named, secret
from falsework.manifests.operators import ingress
from falsework.operators.certificates.renewal import files_of, pair_in
from falsework.operators.router.routes import EXACT, PATH_TYPE
from falsework.operators.runtime.conditions import status_of

VERSION = "1.2.3"
IMAGES = {"falsework": "registry.example/falsework:1", "haproxy": "registry.example/haproxy:1"}
DOMAIN = "apps.ocp4.example.com"
SPACE = "ingressed"
OWN, NAMED = ("router-certs-default", "openshift-ingress"), ("named", "openshift-ingress")
AUTHORITY = ("router-ca", "openshift-ingress-operator")
LONG_AGO = timedelta(hours=20)
"""Of a certificate that lives for a day, less than a third is left."""
ROUTER = ("router-default", "openshift-ingress")
MADE = (
    (DEPLOYMENTS, *ROUTER),
    (POD_DISRUPTION_BUDGETS, *ROUTER),
    (SERVICES, "router-internal-default", "openshift-ingress"),
    (SECRETS, *OWN),
    (SECRETS, *NAMED),
    (SECRETS, *AUTHORITY),
    (CONFIG_MAPS, "default-ingress-cert", "openshift-config-managed"),
)


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Iterator[Client]:
    found = cluster_api.client()
    config = named("config.openshift.io/v1", "Ingress", "cluster", spec={"domain": DOMAIN})
    (reported,) = cluster_operators(VERSION)["0000_50_ingress_07_clusteroperator.yaml"]
    (ingress_class,) = ingress.manifests(VERSION, IMAGES)["0000_50_ingress_05_ingressclass.yaml"]
    bodies = (config, reported, ingress_class, named("v1", "Namespace", SPACE))
    for body in bodies:
        found.patch(found.resource_of(body), body["metadata"]["name"], body, kind=APPLY)
    yield found
    for resource, name, namespace in MADE:
        found.delete(resource, name, namespace)
    for resource in (KUBE_INGRESSES, ROUTES, SERVICES, SECRETS):
        for body in found.list(resource, SPACE).items:
            found.delete(resource, body["metadata"]["name"], SPACE)
    for body in bodies:
        found.delete(found.resource_of(body), body["metadata"]["name"])


@pytest.fixture(scope="module")
def operator(
    client: Client, cluster_api: RealApi, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    account = account_of(cluster_api, ingress.manifests(VERSION, IMAGES))
    log = tmp_path_factory.mktemp("ingress-operator") / "log"
    images = [f"--image={name}={reference}" for name, reference in IMAGES.items()]
    with operator_process(cluster_api, [*POD, ingress.NAME], account, log, *images) as process:
        yield process
        assert "Forbidden" not in process.log.read_text()


def said(client: Client, kind: str) -> bool | None:
    return status_of(client.get(CLUSTER_OPERATORS, "ingress")["status"]["conditions"], kind)


def controller(client: Client) -> Object:
    return client.get(INGRESS_CONTROLLERS, ingress.CONTROLLER, ingress.NAMESPACE)


def rolled_out(client: Client) -> bool:
    """What the Deployment controller says when all its pods are ready, whatever the Deployment has become meanwhile."""
    live = client.get(DEPLOYMENTS, *ROUTER)
    counts = dict.fromkeys(
        ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), live["spec"]["replicas"]
    )
    status = {**counts, "observedGeneration": live["metadata"]["generation"]}
    client.patch(DEPLOYMENTS, ROUTER[0], {"status": status}, ROUTER[1], subresource="status")
    return True


def data_of(client: Client, name: str, namespace: str) -> dict[str, bytes]:
    data = client.get(SECRETS, name, namespace)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


def test_routers_run_are_kept_and_told(client: Client, operator: OperatorProcess) -> None:
    until(lambda: client.get(DEPLOYMENTS, *ROUTER), operator)
    until(lambda: said(client, "Available") is False, operator)
    until(
        lambda: rolled_out(client) and said(client, "Available") and said(client, "Progressing") is False,
        operator,
    )
    until(lambda: controller(client)["status"]["availableReplicas"] == 1, operator)
    status = controller(client)["status"]
    assert (status["domain"], status["endpointPublishingStrategy"]["type"]) == (DOMAIN, "HostNetwork")
    assert status_of(status["conditions"], "Admitted") is True

    # What clients trust, and what routers show.
    until(lambda: client.get(CONFIG_MAPS, "default-ingress-cert", "openshift-config-managed"), operator)
    until(lambda: data_of(client, *OWN), operator)
    shown = data_of(client, *OWN)
    (authority,) = trusted(client)
    assert is_signed_by(pair_in(shown).certificate, authority)
    ssl.create_default_context(cadata=certificate_pem(authority).decode())

    # Somebody's mistakes.
    client.patch(DEPLOYMENTS, ROUTER[0], {"spec": {"template": {"spec": {"hostNetwork": False}}}}, ROUTER[1])
    until(lambda: client.get(DEPLOYMENTS, *ROUTER)["spec"]["template"]["spec"].get("hostNetwork"), operator)
    client.delete(SECRETS, *OWN)
    until(lambda: data_of(client, *OWN) != shown, operator)

    place = (INGRESS_CONTROLLERS, ingress.CONTROLLER)
    try:
        client.patch(*place, {"spec": {"endpointPublishingStrategy": {"type": "Private"}}}, ingress.NAMESPACE)
        until(lambda: status_of(controller(client)["status"]["conditions"], "Admitted") is False, operator)
    finally:
        nothing = {"endpointPublishingStrategy": None, "replicas": 3}
        client.patch(*place, {"spec": nothing}, ingress.NAMESPACE)
    until(lambda: client.get(DEPLOYMENTS, *ROUTER)["spec"]["replicas"] == 3, operator)
    client.patch(*place, {"spec": {"replicas": None}}, ingress.NAMESPACE)
    until(lambda: client.get(DEPLOYMENTS, *ROUTER)["spec"]["replicas"] == 1, operator)


def test_certificates_are_made_anew_before_they_end(client: Client, operator: OperatorProcess) -> None:
    until(lambda: data_of(client, *OWN), operator)
    before = trusted(client)
    first = issue(Subject("ingress-operator@1"), Validity.TWO_YEARS, datetime.now(UTC) - Validity.MONTH.span)
    put(client, first, *AUTHORITY)
    until(lambda: is_signed_by(pair_in(data_of(client, *OWN)).certificate, first.certificate), operator)
    ageing = leaf(first, datetime.now(UTC) - LONG_AGO)
    put(client, ageing, *OWN)
    until(lambda: pair_in(data_of(client, *OWN)).life.ends > ageing.life.ends, operator)
    assert is_signed_by(pair_in(data_of(client, *OWN)).certificate, first.certificate)

    # The authority: clients know the new one before it is shown, and the old one for as long as it lasts.
    put(client, issue(Subject("ingress-operator@2"), Validity.DAY, datetime.now(UTC) - LONG_AGO), *AUTHORITY)
    until(lambda: not is_signed_by(pair_in(data_of(client, *OWN)).certificate, first.certificate), operator)
    second = pair_in(data_of(client, *AUTHORITY))
    assert is_signed_by(pair_in(data_of(client, *OWN)).certificate, second.certificate)
    assert trusted(client) == [*before, first.certificate, second.certificate]

    # Somebody's mistake in what clients trust: the authority is what is known for sure.
    nonsense = {"data": {"ca-bundle.crt": "nonsense"}}
    client.patch(CONFIG_MAPS, "default-ingress-cert", nonsense, "openshift-config-managed")
    until(lambda: bundle(client) == certificate_pem(second.certificate), operator)


def test_a_named_certificate_is_shown_once_it_can_be(client: Client, operator: OperatorProcess) -> None:
    until(lambda: data_of(client, *OWN), operator)
    own = trusted(client)
    now = datetime.now(UTC)
    elsewhere = issue(Subject("elsewhere"), Validity.DAY, now)
    first, second = leaf(elsewhere, now), leaf(elsewhere, now)
    place = (INGRESS_CONTROLLERS, ingress.CONTROLLER)
    client.patch(*place, {"spec": {"defaultCertificate": {"name": NAMED[0]}}}, ingress.NAMESPACE)
    until(lambda: "there is no Secret openshift-ingress/named" in refusal(client), operator)
    mixed = {"tls.crt": files_of(first)["tls.crt"], "tls.key": files_of(second)["tls.key"]}
    client.create(SECRETS, secret(*NAMED, mixed, "kubernetes.io/tls"))
    until(lambda: "is of no use" in refusal(client), operator)
    # Meanwhile routers go on, and the operator's own certificate is kept.
    assert certificate_of_routers(client) == OWN[0]
    client.delete(SECRETS, *OWN)
    until(lambda: data_of(client, *OWN), operator)

    put(client, first, *NAMED)
    until(lambda: certificate_of_routers(client) == NAMED[0] and not refusal(client), operator)
    until(lambda: trusted(client) == [*own, first.certificate], operator)
    put(client, second, *NAMED)
    until(lambda: trusted(client) == [*own, second.certificate], operator)
    client.patch(*place, {"spec": {"defaultCertificate": None}}, ingress.NAMESPACE)
    until(lambda: certificate_of_routers(client) == OWN[0] and trusted(client) == own, operator)


def leaf(signer: Pair, now: datetime) -> Pair:
    name = f"*.{DOMAIN}"
    return issue(Subject(name), Validity.DAY, now, signer=signer, uses=frozenset({Use.SERVER}), dns=[name])


def put(client: Client, pair: Pair, name: str, namespace: str) -> None:
    client.patch(SECRETS, name, {"data": secret(name, namespace, files_of(pair))["data"]}, namespace)


def bundle(client: Client) -> bytes:
    data = client.get(CONFIG_MAPS, "default-ingress-cert", "openshift-config-managed")["data"]
    return str(data["ca-bundle.crt"]).encode()


def trusted(client: Client) -> list[Certificate]:
    return load_certificates(bundle(client))


def refusal(client: Client) -> str:
    """Why the IngressController is not admitted; empty if it is."""
    (admitted,) = (one for one in controller(client)["status"]["conditions"] if one["type"] == "Admitted")
    return "" if admitted["status"] == "True" else str(admitted["message"])


def certificate_of_routers(client: Client) -> str:
    (router,) = client.get(DEPLOYMENTS, *ROUTER)["spec"]["template"]["spec"]["initContainers"]
    (word,) = (word for word in router["command"] if word.startswith("--certificate="))
    return str(word.partition("=")[2])


def test_an_ingress_becomes_routes_and_is_told_where_it_is(client: Client, operator: OperatorProcess) -> None:
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    client.create(SERVICES, named("v1", "Service", "shop", SPACE, spec={"ports": ports}))
    client.create(KUBE_INGRESSES, _ingress("shop", "shop.example.com", "shop-tls"))
    client.create(KUBE_INGRESSES, _ingress("foreign", "foreign.example.com", "", ingressClassName="another"))
    # Its certificate is not there yet, so neither is its route.
    pair = data_of_when_there(client, operator)
    client.create(SECRETS, secret("shop-tls", SPACE, pair, "kubernetes.io/tls"))
    until(lambda: len(client.list(ROUTES, SPACE).items) == 1, operator)
    (route,) = client.list(ROUTES, SPACE).items
    assert route["spec"]["host"] == "shop.example.com"
    assert route["spec"]["port"] == {"targetPort": "web"}
    assert route["spec"]["tls"]["insecureEdgeTerminationPolicy"] == "Redirect"
    assert route["spec"]["tls"]["certificate"].encode() == pair["tls.crt"]
    assert client.get(INGRESS_CLASSES, "openshift-default")["spec"]["controller"] == "openshift.io/ingress-to-route"

    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    entry = {"routerName": "default", "routerCanonicalHostname": f"router-default.{DOMAIN}", "conditions": [admitted]}
    place = route["metadata"]["name"], {"status": {"ingress": [entry]}}, SPACE
    client.patch(ROUTES, *place, subresource="status")
    until(
        lambda: (
            client.get(KUBE_INGRESSES, "shop", SPACE)["status"]["loadBalancer"]["ingress"]
            == [{"hostname": f"router-default.{DOMAIN}"}]
        ),
        operator,
    )
    client.delete(KUBE_INGRESSES, "shop", SPACE)
    until(lambda: client.list(ROUTES, SPACE).items == [], operator)


def test_one_path_in_two_ways_is_two_routes(client: Client, operator: OperatorProcess) -> None:
    body = _ingress("twice", "twice.example.com", "")
    (path,) = body["spec"]["rules"][0]["http"]["paths"]
    body["spec"]["rules"][0]["http"]["paths"] = [path, {**path, "pathType": "Exact"}]
    client.create(SERVICES, named("v1", "Service", "twice", SPACE, spec={"ports": [{"port": 80}]}))
    path["backend"]["service"]["name"] = "twice"
    client.create(KUBE_INGRESSES, body)
    until(lambda: len(client.list(ROUTES, SPACE).items) == 2, operator)
    found = [route["metadata"].get("annotations") or {} for route in client.list(ROUTES, SPACE).items]
    assert sorted(noted.get(PATH_TYPE, "") for noted in found) == ["", EXACT]
    client.delete(KUBE_INGRESSES, "twice", SPACE)
    until(lambda: client.list(ROUTES, SPACE).items == [], operator)


def data_of_when_there(client: Client, operator: OperatorProcess) -> dict[str, bytes]:
    until(lambda: data_of(client, *OWN), operator)
    assert client.list(ROUTES, SPACE).items == []
    return data_of(client, *OWN)


def _ingress(name: str, host: str, tls: str, **spec: Any) -> Object:
    backend = {"service": {"name": "shop", "port": {"number": 80}}}
    rule = {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    secured = {"tls": [{"hosts": [host], "secretName": tls}]} if tls else {}
    return named("networking.k8s.io/v1", "Ingress", name, SPACE, spec={"rules": [rule], **secured, **spec})
