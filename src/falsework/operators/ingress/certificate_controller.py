"""Keeps the authority and the certificate of the domain, and tells the cluster whom to trust."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from falsework.kube.client import Object
from falsework.kube.resources import CONFIG_MAPS, INGRESS_CONTROLLERS, INGRESSES, SECRETS
from falsework.manifests.objects import config_map, secret
from falsework.manifests.operators.ingress import CONTROLLER, NAMESPACE, ROUTER_NAMESPACE, TRUST_NAMESPACE
from falsework.operators.ingress.settings import OWN_CERTIFICATE, TLS, TLS_SECRETS, certificate_of, domain_of
from falsework.operators.runtime.controller import always
from falsework.operators.runtime.program import Program

AUTHORITY = "router-ca"
TRUST = "default-ingress-cert"
_BUNDLE = "ca-bundle.crt"
_LONGEST = 24 * 3600.0


class CertificateController:
    def __init__(self, program: Program) -> None:
        self._client, self._events = program.client, program.events
        self._controllers = program.follow(INGRESS_CONTROLLERS, NAMESPACE)
        self._configs = program.follow(INGRESSES)
        self._authorities = program.follow(SECRETS, NAMESPACE, fields=f"metadata.name={AUTHORITY}")
        self._certificates = program.follow(SECRETS, ROUTER_NAMESPACE, fields=TLS_SECRETS)
        self._trust = program.follow(CONFIG_MAPS, TRUST_NAMESPACE, fields=f"metadata.name={TRUST}")
        followed = (self._controllers, self._configs, self._authorities, self._certificates, self._trust)
        self.wakes = [(informer, always) for informer in followed]

    def sync(self, _key: str) -> float | None:
        # Late: they bring a large library.
        from falsework.operators.ingress import certificates

        controller = self._controllers.get(CONTROLLER, NAMESPACE)
        if controller is None:
            return None
        domain, now = domain_of(controller, self._configs.get("cluster")), datetime.now(UTC)
        # Looked at once: what is written is made from what is replaced, or refused by the API.
        old_signer = self._authorities.get(AUTHORITY, NAMESPACE)
        old_leaf = self._certificates.get(OWN_CERTIFICATE, ROUTER_NAMESPACE)
        signer, signer_lasts = certificates.authority(_decoded(old_signer), now)
        self._settle(old_signer, AUTHORITY, NAMESPACE, signer)
        # Before anything shows a certificate by a new authority, that one is known.
        told = self._trust.get(TRUST, TRUST_NAMESPACE)
        before = ((told or {}).get("data") or {}).get(_BUNDLE, "")
        self._tell(told, before, certificates.trusted(before, signer, self._named_certificate(controller), now))
        leaf, leaf_lasts = certificates.wildcard(_decoded(old_leaf), signer, domain, now)
        self._settle(old_leaf, OWN_CERTIFICATE, ROUTER_NAMESPACE, leaf)
        return min(signer_lasts, leaf_lasts, _LONGEST)

    def _named_certificate(self, controller: Object) -> dict[str, bytes]:
        """What is shown instead of the operator's own; empty if that is, or while it is not there."""
        name = certificate_of(controller)
        return {} if name == OWN_CERTIFICATE else _decoded(self._certificates.get(name, ROUTER_NAMESPACE))

    def _settle(self, live: Object | None, name: str, namespace: str, wanted: dict[str, bytes]) -> None:
        if live is not None and _decoded(live) == wanted:
            return
        body = secret(name, namespace, wanted, TLS)
        if live is None:
            self._client.create(SECRETS, body)
        else:
            self._client.patch(SECRETS, name, {"metadata": _version(live), "data": body["data"]}, namespace)
        self._events.normal("CertificateMade", f"Secret/{name} -n {namespace}")

    def _tell(self, live: Object | None, before: str, bundle: str) -> None:
        if live is not None and bundle == before:
            return
        if live is None:
            self._client.create(CONFIG_MAPS, config_map(TRUST, TRUST_NAMESPACE, {_BUNDLE: bundle}))
        else:
            patch = {"metadata": _version(live), "data": {_BUNDLE: bundle}}
            self._client.patch(CONFIG_MAPS, TRUST, patch, TRUST_NAMESPACE)
        self._events.normal("CABundleUpdated", f"Updated ConfigMap/{TRUST} -n {TRUST_NAMESPACE}")


def _version(live: Object) -> Object:
    return {"resourceVersion": live["metadata"]["resourceVersion"]}


def _decoded(live: Object | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in ((live or {}).get("data") or {}).items()}
