"""Everything that makes a registry, brought about and taken away again.

Every step looks at what there is: ended at any moment, the next look goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.informer import Informer
from falsework.kube.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    PERSISTENT_VOLUME_CLAIMS,
    ROUTES,
    SECRETS,
    SERVICES,
)
from falsework.manifests.objects import config_map
from falsework.manifests.operators.image_registry import INGRESS_CERTIFICATE, NAME, NAMESPACE
from falsework.operators.image_registry import credentials, node_registries, registry
from falsework.operators.image_registry.credentials import Files
from falsework.operators.image_registry.generated_secrets import GeneratedSecrets
from falsework.operators.image_registry.names import (
    CERTIFICATES,
    CONFIG,
    LOGIN,
    NODE_CA,
    NODE_REGISTRIES,
    PORT,
    PRIVATE,
    REGISTRY,
    ROUTE,
    SERVICE_NAMES,
    SERVING,
    SIGNER,
    Place,
)
from falsework.operators.image_registry.settings import Settings
from falsework.operators.image_registry.storage import new_claim, strategy_for
from falsework.operators.runtime.kept_objects import KeptObjects
from falsework.operators.runtime.program import Program
from falsework.operators.runtime.rollouts import roll_out_of

_SHARED_NAMESPACE = "openshift-config-managed"
_INGRESS_BUNDLE = "ca-bundle.crt"
_TLS, _PULL_SECRET = "kubernetes.io/tls", "kubernetes.io/dockerconfigjson"


@dataclass(frozen=True)
class Applied:
    """What the registry has."""

    claim: Object | None
    """None: its images go with its pod."""
    place: Place


class Operand:
    def __init__(self, program: Program) -> None:
        self._client = program.client
        self._images = program.images
        self._deployments = program.follow(DEPLOYMENTS, NAMESPACE, fields=f"metadata.name={REGISTRY}")
        self._daemon_sets = program.follow(DAEMON_SETS, NAMESPACE, fields=f"metadata.name={NODE_CA}")
        self._services = program.follow(SERVICES, NAMESPACE, fields=f"metadata.name={REGISTRY}")
        self._maps = program.follow(CONFIG_MAPS, NAMESPACE)
        self._secrets = program.follow(SECRETS, NAMESPACE)
        self._claims = program.follow(PERSISTENT_VOLUME_CLAIMS, NAMESPACE)
        self._routes = program.follow(ROUTES, NAMESPACE, fields=f"metadata.name={ROUTE}")
        self._ingresses = program.follow(INGRESSES)
        self._ingress_bundles = program.follow(
            CONFIG_MAPS, _SHARED_NAMESPACE, fields=f"metadata.name={INGRESS_CERTIFICATE}"
        )
        self._kept = KeptObjects(program.client, program.events, NAME)
        self._generated = GeneratedSecrets(program.client, program.events, NAMESPACE, self._secrets)

    @property
    def followed(self) -> tuple[Informer, ...]:
        return (
            *(self._deployments, self._daemon_sets, self._services, self._maps, self._secrets, self._claims),
            *(self._routes, self._ingresses, self._ingress_bundles),
        )

    @property
    def deployment(self) -> Object | None:
        return self._deployments.get(REGISTRY, NAMESPACE)

    @property
    def daemon_set(self) -> Object | None:
        return self._daemon_sets.get(NODE_CA, NAMESPACE)

    def apply(self, settings: Settings) -> Applied:
        claim = self._claim(settings)
        strategy = strategy_for(settings, claim)
        place = self._place(settings)
        login = self._generated.settle(LOGIN, lambda old: credentials.login(old, place.hosts), _PULL_SECRET)
        private = self._generated.settle(PRIVATE, lambda old: credentials.private(old, login))
        bundle, serving = self._certificates(place, credentials.authorization(login))
        self._kept.keep(CONFIG_MAPS, registry.config_object(settings), self._maps)
        read_once = (*private.values(), *serving.values())
        self._change_strategy(strategy)
        wanted = registry.deployment(settings, self._images["registry"], strategy, read_once)
        self._kept.keep(DEPLOYMENTS, wanted, self._deployments)
        if place.route:
            self._kept.keep(ROUTES, registry.route(place.route, bundle), self._routes)
        else:
            self._kept.remove(ROUTES, ROUTE, NAMESPACE, self._routes)
        return Applied(claim, place)

    def remove(self) -> None:
        """All but the claim: whoever has stored something decides what becomes of it."""
        self._kept.remove(ROUTES, ROUTE, NAMESPACE, self._routes)
        self._kept.remove(DEPLOYMENTS, REGISTRY, NAMESPACE, self._deployments)
        self._kept.remove(SERVICES, REGISTRY, NAMESPACE, self._services)
        for name in (CONFIG, CERTIFICATES):
            self._kept.remove(CONFIG_MAPS, name, NAMESPACE, self._maps)
        for name in (LOGIN, PRIVATE, SERVING, SIGNER):
            self._kept.remove(SECRETS, name, NAMESPACE, self._secrets)
        if self.daemon_set is None:
            self._kept.remove(SECRETS, NODE_REGISTRIES, NAMESPACE, self._secrets)
        elif self._tell_nodes(node_registries.files([])):
            self._kept.remove(DAEMON_SETS, NODE_CA, NAMESPACE, self._daemon_sets)

    def _claim(self, settings: Settings) -> Object | None:
        if not settings.claim:
            return None
        known = self._claims.get(settings.claim, NAMESPACE)
        return known or self._client.create(PERSISTENT_VOLUME_CLAIMS, new_claim(settings))

    def _change_strategy(self, kind: str) -> None:
        """The API has added to the one kind what the other may not have, and applying takes away only what we gave."""
        live = self.deployment
        if live is not None and live["spec"]["strategy"]["type"] != kind:
            change = {"spec": {"strategy": {"type": kind, "rollingUpdate": None}}}
            self._client.patch(DEPLOYMENTS, REGISTRY, change, NAMESPACE, field_manager=NAME)

    def _place(self, settings: Settings) -> Place:
        service = self._kept.keep(SERVICES, registry.service(), self._services)
        addresses = tuple(map(str, service["spec"].get("clusterIPs") or ()))
        if not settings.default_route:
            return Place(addresses, "")
        domain = ((self._ingresses.get("cluster") or {}).get("spec") or {}).get("domain")
        if not domain:
            raise FalseworkError(
                "the registry's route has no name", cause="ingresses.config.openshift.io/cluster has no spec.domain"
            )
        return Place(addresses, f"{ROUTE}-{NAMESPACE}.{domain}")

    def _certificates(self, place: Place, authorization: str) -> tuple[str, Files]:
        """Whom to trust, which the nodes know before it is needed; and the certificate the registry shows."""
        # Late: they bring a large library, and many clusters have no registry.
        from falsework.operators.certificates.renewal import merged
        from falsework.operators.image_registry import certificates

        moment = datetime.now(UTC)
        signer = self._generated.settle(SIGNER, lambda old: certificates.signer(old, moment), _TLS)
        keys = [f"{name}..{PORT}" for name in SERVICE_NAMES]
        known = (self._maps.get(CERTIFICATES, NAMESPACE) or {}).get("data") or {}
        bundle = merged(str(known.get(keys[0], "")), [signer["tls.crt"]], moment)
        self._kept.keep(CONFIG_MAPS, config_map(CERTIFICATES, NAMESPACE, dict.fromkeys(keys, bundle)), self._maps)
        told = node_registries.registries(place, bundle, self._ingress_bundle(), authorization)
        nodes_know = self._tell_nodes(node_registries.files(told))
        serving = self._generated.settle(
            SERVING,
            lambda old: certificates.serving(old, signer, bundle, place.addresses, moment, known=nodes_know),
            _TLS,
        )
        return bundle, serving

    def _tell_nodes(self, content: Files) -> bool:
        """Whether all of them know."""
        self._generated.settle(NODE_REGISTRIES, lambda _: content)
        wanted = node_registries.daemon_set(content, self._images["falsework"], self._images["pause"])
        live = self._kept.keep(DAEMON_SETS, wanted, self._daemon_sets)
        return node_registries.told(live) == node_registries.digest_of(content) and roll_out_of(live).is_complete

    def _ingress_bundle(self) -> str:
        known = self._ingress_bundles.get(INGRESS_CERTIFICATE, _SHARED_NAMESPACE) or {}
        return str((known.get("data") or {}).get(_INGRESS_BUNDLE, ""))
