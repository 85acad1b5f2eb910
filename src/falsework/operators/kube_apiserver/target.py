"""ConfigMap kube-apiserver-pod: from the site's facts and the etcd members that live on masters."""

from __future__ import annotations

from falsework.errors import FalseworkError
from falsework.etcd.gate import EtcdGate, Wait, is_enough, too_few
from falsework.kube.resources import CONFIG_MAPS
from falsework.operators.kube_apiserver.pod import NAME, NAMESPACE, etcd_servers, pod
from falsework.operators.runtime.conditions import condition
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.program import Program
from falsework.operators.site_facts import ControlPlaneSize, Site
from falsework.operators.target_config import TargetConfig, pod_data

ETCD_NAMESPACE = "openshift-etcd"
ETCD_ENDPOINTS = "etcd-endpoints"

_POD = f"{NAME}-pod"
_SIGNED_FOR = "sa-token-signing-certs"
_PROGRESSING = "TargetConfigControllerProgressing"


class Target:
    def __init__(self, program: Program, gate: EtcdGate | None = None) -> None:
        self._program = program
        self._gate = gate or EtcdGate()
        self._site = Site(program)
        self._size = ControlPlaneSize(program)
        self._endpoints = program.follow(CONFIG_MAPS, ETCD_NAMESPACE, fields=f"metadata.name={ETCD_ENDPOINTS}")
        self._config = TargetConfig(program, NAMESPACE, _POD, reads=(_SIGNED_FOR,))

    def controller(self) -> Controller:
        wakes = (*self._config.wakes, *self._site.wakes, *self._size.wakes, (self._endpoints, always))
        return Controller("TargetConfigController", self.sync, wakes)

    def sync(self, _: str) -> float | None:
        addresses = self._etcd_addresses()
        if wait := self._wait(len(addresses)):
            self._say(condition(_PROGRESSING, True, "WaitingForEtcd", wait.reason))
            return wait.seconds
        keys = (self._config.live(_SIGNED_FOR) or {}).get("data") or {}
        if not keys:
            raise FalseworkError(
                f"ConfigMap {NAMESPACE}/{_SIGNED_FOR} says not whose tokens are good", cause="it is missing or empty"
            )
        made = pod(self._program.images[NAME], etcd_servers(addresses), self._site.facts(), keys)
        self._config.keep(_POD, pod_data(made))
        self._say(condition(_PROGRESSING, False, "AsExpected"))
        return None

    def _etcd_addresses(self) -> set[str]:
        found = self._endpoints.get(ETCD_ENDPOINTS, ETCD_NAMESPACE) or {}
        return set((found.get("data") or {}).values())

    def _wait(self, live: int) -> Wait | None:
        replicas = self._size.replicas()
        if self._config.live(_POD) is None:
            return self._gate.wait(live, replicas)
        if not is_enough(live, replicas):
            # What runs was made for more: that is kept.
            raise FalseworkError(f"etcd {too_few(live, replicas)}", cause="the API servers keep their list of members")
        return None

    def _say(self, *conditions: dict[str, object]) -> None:
        assert self._program.status is not None
        self._program.status.set(*conditions)
