"""The controllers of the etcd operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from falsework.errors import FalseworkError
from falsework.etcd.gateway import Gateway
from falsework.etcd.settings import METRICS_PORT, QUOTA_BYTES, client_url
from falsework.kube.client import APPLY, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, ETCDS, INFRASTRUCTURES, NODES, PODS
from falsework.operators.etcd import endpoints, pod
from falsework.operators.etcd.board import Board
from falsework.operators.etcd.credentials import Credentials
from falsework.operators.etcd.masters import INVENTORY, INVENTORY_NAMESPACE, address_of, inventory_in, masters_in
from falsework.operators.etcd.members_conditions import members_conditions
from falsework.operators.etcd.membership import Masters, may_restart_one
from falsework.operators.etcd.removal import BootstrapRemoval
from falsework.operators.etcd.scaling import Scaling
from falsework.operators.etcd.teardown import judge
from falsework.operators.runtime.conditions import condition, status_of
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.log import Changes
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod.controllers import static_pod_controllers
from falsework.operators.static_pod.guard import Guard
from falsework.operators.static_pod.node_statuses import MASTERS
from falsework.operators.static_pod.operand import Operand
from falsework.operators.target_config import TargetConfig, pod_data

OPERAND = Operand(
    name="etcd",
    pod_name=pod.POD_NAME,
    namespace=pod.NAMESPACE,
    resource=ETCDS,
    config_maps=(pod.BUNDLES,),
    secrets=(pod.CERTIFICATES,),
    # One that has not caught up may take its time: it waits in good company.
    patience=600.0,
)
RUNNING, REMOVED = "EtcdRunningInCluster", "EtcdBootstrapMemberRemoved"
"""Conditions the bootstrap and the installer wait for."""
_LOOK_EVERY = 10.0
"""Seconds between two looks at members when nothing is under way."""
_RETRY = 0.25


class EtcdOperator:
    def __init__(self, program: Program) -> None:
        assert program.status is not None, "the operator has an object of its own"
        self._program = program
        self._status = program.status
        self._own = program.follow(ETCDS)
        self._nodes = program.follow(NODES, labels=MASTERS)
        self._pods = program.follow(PODS, pod.NAMESPACE)
        self._config_maps = program.follow(CONFIG_MAPS, pod.NAMESPACE)
        self._target = TargetConfig(program, pod.NAMESPACE, OPERAND.pod_config_map)
        self._inventory = program.follow(CONFIG_MAPS, INVENTORY_NAMESPACE, fields=f"metadata.name={INVENTORY}")
        self._infrastructure = program.follow(INFRASTRUCTURES)
        self._complete = program.follow(CONFIG_MAPS, "kube-system", fields="metadata.name=bootstrap")
        self._credentials = Credentials(program)
        self._gateway = Gateway(self._endpoints, self._credentials.context)
        self._scaling = Scaling(self._gateway, program.events.normal)
        self._removal = BootstrapRemoval(self._gateway, program.events.normal)
        self._waits = Changes(program.log.of("ClusterMemberController").info)
        self._board = Board()

    def add_controllers(self) -> None:
        mine = partial(_named, f"{pod.POD_NAME}-")
        described = [(self._own, always), (self._inventory, always), *self._target.wakes]
        self._add("TargetConfigController", self._target_config, described, board=False)
        self._add(
            "ClusterMemberController",
            self._members,
            [(self._nodes, _IfMoved()), (self._pods, mine), (self._inventory, always), *self._credentials.wakes],
            board=False,
            resync=_LOOK_EVERY,
        )
        endpoints_map = (self._config_maps, partial(_named, endpoints.NAME))
        self._add("EtcdEndpointsController", self._publish_endpoints, [endpoints_map])
        self._add("EtcdMembersController", self._tell_members, [])
        self._add("BootstrapTeardownController", self._tear_down, [(self._complete, always)])
        # From when the masters are on their own: before, nobody drains one, and everything else is more urgent.
        guard = Guard(
            self._program.images["pause"], METRICS_PORT, "/readyz", "HTTP", after=0.0, wanted=self._bootstrap_is_gone
        )
        static_pod_controllers(self._program, OPERAND, may_roll_out=self._may_roll_out, guard=guard)

    def _add(
        self,
        name: str,
        sync: Callable[[str], float | None],
        wakes: list[tuple[Informer, Callable[[WatchEvent], str | None]]],
        *,
        board: bool = True,
        resync: float = 60.0,
    ) -> None:
        """With `board`, it is woken by every change of the members."""
        self._program.add(Controller(name, sync, wakes, resync))
        if board:
            worker = self._program.workers[-1]
            self._board.wakes(lambda: worker.wake(""))

    # What is seen

    def _masters(self) -> Masters:
        return masters_in(self._nodes.objects(), self._pods.objects())

    def _endpoints(self) -> list[str]:
        """The bootstrap's member last: it is the one that will go."""
        addresses = list(self._masters().addresses.values())
        if not self._bootstrap_is_gone():
            addresses.append(inventory_in(self._inventory.get(INVENTORY, INVENTORY_NAMESPACE)).bootstrap)
        return [client_url(address) for address in addresses if address]

    def _bootstrap_is_gone(self) -> bool:
        status = (self._own.get("cluster") or {}).get("status") or {}
        return status_of(status.get("conditions"), REMOVED) is True

    # What is done

    def _target_config(self, _: str) -> None:
        inventory = inventory_in(self._inventory.get(INVENTORY, INVENTORY_NAMESPACE))
        own = self._own.get("cluster")
        if own is None:
            # What it says of the machines is in the pod: without it, the first revision would be a wrong one.
            raise FalseworkError("etcds.operator.openshift.io/cluster is missing", cause="it has not been created yet")
        spec = own.get("spec") or {}

        def rendered(*others: str) -> dict[str, str]:
            facts = pod.Facts(
                self._program.images["etcd"],
                self._program.images["falsework"],
                (*inventory.masters, *others),
                str(spec.get("controlPlaneHardwareSpeed") or ""),
                max(1, len(inventory.masters)),
                int(spec.get("backendQuotaGiB") or QUOTA_BYTES >> 30) << 30,
            )
            return pod_data(pod.etcd_pod(facts))

        known = self._target.live(OPERAND.pod_config_map) or {}
        with_bootstrap = rendered(inventory.bootstrap)
        # That the bootstrap is gone is no reason to restart all members: the next other one takes it along.
        if known.get("data") != with_bootstrap:
            self._target.keep(OPERAND.pod_config_map, rendered() if self._bootstrap_is_gone() else with_bootstrap)

    def _members(self, _: str) -> float | None:
        outcome = self._scaling.run(self._masters())
        self._board.put(outcome.view)
        self._waits.say("waits", outcome.waits and f"Waiting: {outcome.waits}")
        return outcome.pause

    def _publish_endpoints(self, _: str) -> None:
        view = self._board.view
        if view is None:
            return
        known = self._config_maps.get(endpoints.NAME, pod.NAMESPACE)
        annotations = ((known or {}).get("metadata") or {}).get("annotations") or {}
        wanted = endpoints.endpoints(view, self._masters())
        if (
            known is None
            or (known.get("data") or {}) != wanted["data"]
            or annotations != wanted["metadata"]["annotations"]
        ):
            self._program.client.patch(
                CONFIG_MAPS, endpoints.NAME, wanted, pod.NAMESPACE, kind=APPLY, field_manager=self._program.name
            )

    def _tell_members(self, _: str) -> None:
        if (view := self._board.view) is not None:
            self._status.set(*members_conditions(view))

    def _tear_down(self, _: str) -> float | None:
        """Its own look: what it removes, it has to be sure of this moment."""
        known = self._board.view
        if known is None:
            return None
        infrastructure = self._infrastructure.get("cluster") or {}
        topology = str((infrastructure.get("status") or {}).get("controlPlaneTopology") or "")
        view = self._gateway.look()
        found = judge(view, topology)
        if found.bootstrap is None:
            self._tell_removed("BootstrapAlreadyRemoved")
            return None
        if found.missing is not None:
            why = f"still waiting for healthy etcd members: {found.missing}"
            self._status.set(
                condition(RUNNING, False, "NotEnoughEtcdMembers", why),
                condition(REMOVED, False, "NotEnoughEtcdMembers", why),
            )
            # A change on the board wakes us; what was amiss for a moment, and for nobody but us, would change nothing.
            return None if judge(known, topology).missing is not None else _RETRY
        running = condition(RUNNING, True, "EnoughEtcdMembers", "enough members found")
        if not self._is_complete():
            why = "ConfigMap kube-system/bootstrap does not say complete yet"
            self._status.set(running, condition(REMOVED, False, "BootstrapNotComplete", why))
            return None
        refusal = self._removal.attempt(view, found.bootstrap)
        if refusal is not None:
            self._status.set(running, condition(REMOVED, False, "EtcdRefuses", refusal))
            return _RETRY
        self._tell_removed("BootstrapMemberRemoved")
        self._board.put(self._gateway.look())
        return None

    def _tell_removed(self, reason: str) -> None:
        self._status.set(
            condition(RUNNING, True, reason, "etcd runs on the masters alone"),
            condition(REMOVED, True, reason, "etcd bootstrap member is removed"),
        )

    def _is_complete(self) -> bool:
        noted = self._complete.get("bootstrap", "kube-system") or {}
        return bool((noted.get("data") or {}).get("status") == "complete")

    def _may_roll_out(self) -> str | None:
        """Asked anew each time: what was healthy ten seconds ago need not be."""
        members = min(3, max(1, len(self._masters().addresses)))
        try:
            return may_restart_one(self._gateway.look(), members)
        except FalseworkError as error:
            return f"etcd cannot be asked whether one of its members may be spared: {error.cause or error.what}"


def _named(beginning: str, event: WatchEvent) -> str | None:
    return "" if str(event.object["metadata"]["name"]).startswith(beginning) else None


class _IfMoved:
    """Kubelets report every few seconds: only what is said of addresses concerns etcd."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def __call__(self, event: WatchEvent) -> str | None:
        name, address = str(event.object["metadata"]["name"]), address_of(event.object)
        leaving = event.type == "DELETED" or bool(event.object["metadata"].get("deletionTimestamp"))
        said = None if leaving else address
        if name in self._known and self._known[name] == said:
            return None
        self._known[name] = said
        return ""
