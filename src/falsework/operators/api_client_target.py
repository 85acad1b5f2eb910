"""ConfigMaps of static pods that are clients of the API: the pod itself, and the kubeconfig it comes with."""

from __future__ import annotations

from collections.abc import Callable

from falsework.control_plane.pods import Pod
from falsework.operators.api_client_pod import kubeconfig
from falsework.operators.runtime.controller import Controller
from falsework.operators.runtime.program import Program
from falsework.operators.site_facts import Site, SiteFacts
from falsework.operators.static_pod.operand import Operand
from falsework.operators.target_config import TargetConfig, pod_data


def api_client_target(
    program: Program, operand: Operand, kubeconfig_name: str, client: str, pod: Callable[[SiteFacts], Pod]
) -> Controller:
    """`client` is the Secret with its certificate."""
    site = Site(program)
    config = TargetConfig(program, operand.namespace, operand.pod_config_map, kubeconfig_name)

    def sync(_: str) -> None:
        facts = site.facts()
        config.keep(kubeconfig_name, kubeconfig(operand.name, facts.internal_api, client))
        config.keep(operand.pod_config_map, pod_data(pod(facts)))

    return Controller("TargetConfigController", sync, (*config.wakes, *site.wakes))
