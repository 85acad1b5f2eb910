"""All that an operator of static pods needs, in one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from falsework.kube.client import ApiError, Client, Object, WatchEvent
from falsework.kube.informer import Informer
from falsework.kube.resources import CONFIG_MAPS, NODES, PODS, SECRETS
from falsework.operators.runtime.conditions import condition, now, updated
from falsework.operators.runtime.controller import Controller, always
from falsework.operators.runtime.operator_status import OperatorStatus
from falsework.operators.runtime.program import Program
from falsework.operators.static_pod import inputs, mirror_pod, node_statuses
from falsework.operators.static_pod.installer_controller import InstallerController
from falsework.operators.static_pod.operand import OBJECT, REPORT, Operand
from falsework.operators.static_pod.pruning import prunable
from falsework.operators.static_pod.revision_controller import RevisionController


def static_pod_controllers(
    program: Program, operand: Operand, *, may_roll_out: Callable[[], str | None] = lambda: None
) -> None:
    """`may_roll_out` is the operator's own gate: the reason why a node on which the operand works must not be touched
    now, or None. It is asked before each such node; for nodes without any revision it is not."""
    status = program.status
    assert status is not None, "revisions are kept in the operator's object"
    own = program.follow(operand.resource)
    nodes = program.follow(NODES, labels=node_statuses.MASTERS)
    config_maps = program.follow(CONFIG_MAPS, operand.namespace)
    secrets = program.follow(SECRETS, operand.namespace)
    pods = program.follow(PODS, operand.namespace)
    revision = RevisionController(program, status, operand, own, config_maps, secrets)
    installer = InstallerController(program, status, operand, pods, config_maps, may_roll_out)
    watched = partial(_is_input, operand)
    program.add(
        Controller("RevisionController", revision.sync, [(own, always), (config_maps, watched), (secrets, watched)])
    )
    program.add(Controller("MasterNodesController", partial(_note_nodes, status, nodes), [(nodes, always)]))
    program.add(
        Controller("InstallerController", installer.sync, [(own, always), (pods, always), (config_maps, _is_report)])
    )
    program.add(
        Controller(
            "StaticPodStateController", partial(_tell_state, status, operand, pods), [(own, always), (pods, always)]
        )
    )
    program.add(
        Controller("PruneController", partial(_prune, program.client, operand, own, config_maps), [(own, always)])
    )


def _is_input(operand: Operand, event: WatchEvent) -> str | None:
    name = str(event.object["metadata"]["name"])
    return "" if name in operand.all_config_maps or name in operand.secrets else None


def _is_report(event: WatchEvent) -> str | None:
    return "" if str(event.object["metadata"]["name"]).startswith(REPORT) else None


def _note_nodes(status: OperatorStatus, nodes: Informer, _: str) -> None:
    found = nodes.objects()

    def change(known: Object) -> Object:
        listed = node_statuses.of_nodes(known.get("nodeStatuses") or (), found)
        conditions = updated(known.get("conditions") or [], [node_statuses.not_ready(found)], now())
        return {**known, "nodeStatuses": listed, "conditions": conditions}

    status.update(change)


def _tell_state(status: OperatorStatus, operand: Operand, pods: Informer, _: str) -> None:
    """What is wrong with the pods that should be running."""
    troubles: list[str] = []
    for node in (status.update(lambda known: known).get("status") or {}).get("nodeStatuses") or ():
        pod = pods.get(operand.pod_on(node["nodeName"]), operand.namespace)
        if pod is not None:
            troubles += mirror_pod.read(pod).troubles
        elif node.get("currentRevision") and not node.get("targetRevision"):
            troubles.append(f"pod/{operand.pod_on(node['nodeName'])} is missing")
    said = condition("StaticPodsDegraded", bool(troubles), "Error" if troubles else "AsExpected", "\n".join(troubles))
    status.set(said)


def _prune(client: Client, operand: Operand, own: Informer, config_maps: Informer, _: str) -> None:
    """The copies belong to the revision's ConfigMap: the garbage collector takes them with it."""
    operator: Object | None = own.get(OBJECT)
    if operator is None:
        return
    revisions = inputs.revisions_in(config_maps.objects())
    for number in prunable(revisions, operator):
        uid = revisions[number]["metadata"]["uid"]
        try:
            client.delete(CONFIG_MAPS, inputs.status_name(number), operand.namespace, precondition_uid=uid)
        except ApiError as error:
            if not error.is_missing:
                raise
