"""kube-scheduler's static pod on the masters, and what it is made of."""

from __future__ import annotations

from falsework.control_plane import flags
from falsework.control_plane.flags import SCHEDULER_PORT
from falsework.control_plane.pods import Pod
from falsework.control_plane.revision_files import of_config_map
from falsework.operators.api_client_pod import KUBECONFIG_KEY, SERVER_CA, api_client_pod

NAME = "kube-scheduler"
POD_NAME = "openshift-kube-scheduler"
NAMESPACE = "openshift-kube-scheduler"
KUBECONFIG = "scheduler-kubeconfig"
CLIENT = "kube-scheduler-client-cert-key"
CONFIG_MAPS = (KUBECONFIG, SERVER_CA)
SECRETS = (CLIENT,)


def pod(image: str) -> Pod:
    told = flags.kube_scheduler(of_config_map(KUBECONFIG, KUBECONFIG_KEY))
    labels = {"app": POD_NAME, "scheduler": "true"}
    return api_client_pod(NAMESPACE, NAME, POD_NAME, image, told, SCHEDULER_PORT, labels, "15m", "50Mi")
