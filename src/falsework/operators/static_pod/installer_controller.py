"""Says in the operator's status which revision each node is to have. The nodes' daemons follow it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from falsework.kube.client import Object
from falsework.kube.informer import Informer
from falsework.operators.runtime.conditions import now, updated
from falsework.operators.runtime.operator_status import OperatorStatus
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod import mirror_pod, node_statuses
from falsework.operators.static_pod.operand import REPORT, Operand
from falsework.operators.static_pod.progress import Progress
from falsework.operators.static_pod.rollout import Plan, Seen, plan

_ASK_AGAIN = 2.0
_NOT_ASKED = "the operator has yet to be asked whether it may be done now"


class InstallerController:
    """`may_roll_out` gives the reason why what runs must not be replaced now, or None."""

    def __init__(
        self,
        program: Program,
        status: OperatorStatus,
        operand: Operand,
        pods: Informer,
        config_maps: Informer,
        may_roll_out: Callable[[], str | None],
    ) -> None:
        self._events = program.events
        self._status = status
        self._operand = operand
        self._pods = pods
        self._config_maps = config_maps
        self._may_roll_out = may_roll_out
        self._progress = Progress()

    def sync(self, _: str) -> float | None:
        known = self._status.update(lambda status: status).get("status") or {}
        seen = {node["nodeName"]: self._look(node) for node in known.get("nodeStatuses") or ()}
        moment = datetime.now(UTC)
        # The operator is asked before, not while the status is written: it may have to write there itself.
        starts = self._plan(known, seen, moment, "").starts
        gate = (self._may_roll_out() or "") if starts else _NOT_ASKED
        made = Plan([])

        def change(status: Object) -> Object:
            nonlocal made
            made = self._plan(status, seen, moment, gate)
            latest = int(status.get("latestAvailableRevision") or 0)
            said = node_statuses.conditions(made.nodes, latest, made.waits)
            conditions = updated(status.get("conditions") or [], said, now())
            return {**status, "nodeStatuses": made.nodes, "conditions": conditions}

        self._status.update(change)
        for reason, message in made.happened:
            self._events.normal(reason, message)
        if gate and made.waits == gate:
            made.look_again(0.0 if gate == _NOT_ASKED else _ASK_AGAIN)
        return made.again

    def _plan(self, status: Object, seen: dict[str, Seen], moment: datetime, gate: str) -> Plan:
        latest = int(status.get("latestAvailableRevision") or 0)
        return plan(self._operand, status.get("nodeStatuses") or (), latest, seen, moment, gate)

    def _look(self, node: Object) -> Seen:
        name, namespace = str(node["nodeName"]), self._operand.namespace
        pod = self._pods.get(self._operand.pod_on(name), namespace)
        report = self._config_maps.get(f"{REPORT}{name}", namespace)
        return self._progress.look(node, mirror_pod.read(pod) if pod else None, report)
