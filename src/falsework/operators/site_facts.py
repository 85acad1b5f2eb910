"""What operators know of the site: from the cluster's own objects, as they are at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.assets.bootstrap_facts import Network
from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, INFRASTRUCTURES, NETWORKS
from falsework.operators.runtime.controller import Wake, always
from falsework.operators.runtime.program import Program

INSTALL_CONFIG = "cluster-config-v1"
"""The ConfigMap in kube-system with the install-config."""


@dataclass(frozen=True)
class SiteFacts:
    cluster_networks: tuple[Network, ...]
    service_networks: tuple[str, ...]
    internal_api: str
    """The URL by which machines of the cluster reach the API."""


class Site:
    """Follows the objects that say it. All raise FalseworkError while one of them is missing or of no use."""

    def __init__(self, program: Program) -> None:
        self._networks = program.follow(NETWORKS)
        self._infrastructures = program.follow(INFRASTRUCTURES)

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return ((self._networks, always), (self._infrastructures, always))

    def facts(self) -> SiteFacts:
        network = _cluster(self._networks, "networks.config.openshift.io")
        infrastructure = _cluster(self._infrastructures, "infrastructures.config.openshift.io")
        return facts_of(network, infrastructure)


def facts_of(network: Object, infrastructure: Object) -> SiteFacts:
    spec = network.get("spec") or {}
    facts = SiteFacts(
        tuple(Network(str(entry["cidr"]), int(entry["hostPrefix"])) for entry in spec.get("clusterNetwork") or ()),
        tuple(str(cidr) for cidr in spec.get("serviceNetwork") or ()),
        str((infrastructure.get("status") or {}).get("apiServerInternalURI") or ""),
    )
    missing = [
        name
        for name, value in (
            ("clusterNetwork of networks.config/cluster", facts.cluster_networks),
            ("serviceNetwork of networks.config/cluster", facts.service_networks),
            ("apiServerInternalURI of infrastructures/cluster", facts.internal_api),
        )
        if not value
    ]
    if missing:
        raise FalseworkError("the site is not described wholly", cause=f"there is no {', no '.join(missing)}")
    return facts


class ControlPlaneSize:
    """How many masters the site is to have."""

    def __init__(self, program: Program) -> None:
        self._installed = program.follow(CONFIG_MAPS, "kube-system", fields=f"metadata.name={INSTALL_CONFIG}")

    @property
    def wakes(self) -> tuple[Wake, ...]:
        return ((self._installed, always),)

    def replicas(self) -> int:
        import yaml  # late: it is read a few times in an operator's life

        entry = self._installed.get(INSTALL_CONFIG, "kube-system")
        try:
            config = yaml.safe_load(((entry or {}).get("data") or {})["install-config"])
            return int(config["controlPlane"]["replicas"])
        except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
            raise FalseworkError(
                f"ConfigMap kube-system/{INSTALL_CONFIG} does not say how many masters there are to be",
                cause="it is not there" if entry is None else f"{type(error).__name__} in its install-config",
            ) from None


def _cluster(informer: Informer, plural: str) -> Object:
    found = informer.get("cluster")
    if found is None:
        raise FalseworkError(f"there is no {plural}/cluster", cause="it has not been created yet")
    return found
