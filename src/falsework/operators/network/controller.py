"""Keeps flannel on all nodes as the cluster's network is to be, and says how far that is."""

from __future__ import annotations

from urllib.parse import urlsplit

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, DAEMON_SETS, INFRASTRUCTURES, NETWORKS, OPERATOR_NETWORKS, Resource
from falsework.operators.network import flannel
from falsework.operators.network.links import address_towards, mtu_of
from falsework.operators.network.settings import TYPE, Settings, settings_of
from falsework.operators.runtime.conditions import Condition, condition, status_of
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.kept_objects import KeptObjects
from falsework.operators.runtime.program import Program
from falsework.operators.runtime.rollouts import roll_out_of

NAME = "cluster"
MANAGER = "network-operator"


def add_flannel(program: Program) -> None:
    controller = FlannelController(program)
    program.add(Controller("FlannelController", controller.sync, controller.wakes, resync=300.0))


class FlannelController:
    def __init__(self, program: Program) -> None:
        assert program.status is not None
        self._client, self._log = program.client, program.log
        self._status = program.status
        self._images = flannel.Images(program.images["flannel"], program.images["falsework"])
        self._configs = program.follow(NETWORKS)
        self._operators = program.follow(OPERATOR_NETWORKS)
        self._infrastructures = program.follow(INFRASTRUCTURES)
        self._maps = program.follow(CONFIG_MAPS, flannel.NAMESPACE, fields=f"metadata.name={flannel.CONFIG}")
        self._daemons = program.follow(DAEMON_SETS, flannel.NAMESPACE)
        self._kept = KeptObjects(program.client, program.events, MANAGER)
        followed = (self._configs, self._operators, self._infrastructures, self._maps, self._daemons)
        self.wakes = [(informer, always) for informer in followed]

    def sync(self, _key: str) -> None:
        operator = self._operators.get(NAME) or {}
        self._report(operator)
        config = _needed(self._configs, NETWORKS)
        api_url = str((_needed(self._infrastructures, INFRASTRUCTURES).get("status") or {})["apiServerInternalURI"])
        settings = settings_of(config, operator, lambda: _link_mtu(api_url))
        check_unmoved(config)
        if (operator.get("spec") or {}).get("managementState") != "Unmanaged":
            config_map, daemon_set = flannel.objects(settings, api_url, self._images)
            self._kept.keep(CONFIG_MAPS, config_map, self._maps)
            self._kept.keep(DAEMON_SETS, daemon_set, self._daemons)
        self._say_what_is(config, settings)

    def _report(self, operator: Object) -> None:
        before = (operator.get("status") or {}).get("conditions")
        live = self._daemons.get(flannel.DAEMON_SET, flannel.NAMESPACE)
        self._status.set(*conditions_of(live, was_available=status_of(before, "FlannelAvailable") is True))

    def _say_what_is(self, config: Object, settings: Settings) -> None:
        spec = config["spec"]
        status = {
            "clusterNetwork": spec["clusterNetwork"],
            "serviceNetwork": list(settings.service_networks),
            "networkType": TYPE,
            "clusterNetworkMTU": settings.mtu,
        }
        known = config.get("status") or {}
        if {key: known.get(key) for key in status} != status:
            self._client.patch(NETWORKS, NAME, {"status": status}, subresource="status", field_manager=MANAGER)
            self._log.info(f"Pods have {settings.backend} with an MTU of {settings.mtu}")


def check_unmoved(config: Object) -> None:
    """Pods and nodes keep the addresses they have: a cluster's network is decided once."""
    has, wanted = (config.get("status") or {}).get("clusterNetwork"), config["spec"]["clusterNetwork"]
    if has and has != wanted:
        raise FalseworkError(
            "Not applying unsafe configuration change: the cluster's network cannot be another one",
            cause=f"it is {_cidrs(has)}, and networks.config.openshift.io/cluster says {_cidrs(wanted)}",
            fix="set spec.clusterNetwork back",
        )


def conditions_of(daemon_set: Object | None, *, was_available: bool) -> list[Condition]:
    """Available from the first time on that all nodes had it, while any of them has it."""
    rolled = roll_out_of(daemon_set)
    wanted, ready = rolled.wanted, rolled.available
    what = f'DaemonSet "/{flannel.NAMESPACE}/{flannel.DAEMON_SET}"'
    if rolled.is_complete:
        return [
            condition("FlannelAvailable", True, "AsExpected", f"{what} is on all {wanted} nodes"),
            condition("FlannelProgressing", False, "AsExpected"),
        ]
    if daemon_set is None:
        awaited = f"{what} is not made yet"
    else:
        awaited = f"{what} is not available (awaiting {max(wanted - ready, 0)} nodes)"
    return [
        condition("FlannelAvailable", was_available and ready > 0, "Deploying", awaited),
        condition("FlannelProgressing", True, "Deploying", awaited),
    ]


def _needed(informer: Informer, resource: Resource) -> Object:
    found = informer.get(NAME)
    if found is None:
        raise FalseworkError(f"there is no {resource.plural}.{resource.group}/{NAME}")
    return found


def _link_mtu(api_url: str) -> int:
    """Of the link by which this node reaches the API: the other nodes are reached by it too."""
    api = urlsplit(api_url)
    return mtu_of(address_towards(str(api.hostname), api.port or 443))


def _cidrs(networks: list[Object]) -> str:
    return ", ".join(str(entry.get("cidr")) for entry in networks)
