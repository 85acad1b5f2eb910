"""kube-controller-manager's static pod on the masters, and what it is made of."""

from __future__ import annotations

from falsework.control_plane import flags
from falsework.control_plane.flags import CONTROLLER_MANAGER_PORT, ControllerManagerFiles
from falsework.control_plane.pods import Pod
from falsework.control_plane.revision_files import bundle_of, of_config_map, of_secret, pair_of_secret
from falsework.operators.api_client_pod import KUBECONFIG_KEY, SERVER_CA, api_client_pod
from falsework.operators.site_facts import SiteFacts

NAME = "kube-controller-manager"
NAMESPACE = "openshift-kube-controller-manager"
KUBECONFIG = "controller-manager-kubeconfig"
CLIENT = "kube-controller-manager-client-cert-key"
CONFIG_MAPS = (KUBECONFIG, SERVER_CA)
SECRETS = ("csr-signer", CLIENT, "service-account-private-key")


def pod(image: str, facts: SiteFacts) -> Pod:
    files = ControllerManagerFiles(
        kubeconfig=of_config_map(KUBECONFIG, KUBECONFIG_KEY),
        csr_signer=pair_of_secret("csr-signer"),
        root_ca=bundle_of(SERVER_CA),
        token_key=of_secret("service-account-private-key", "service-account.key"),
    )
    told = flags.kube_controller_manager(files, facts.cluster_networks, facts.service_networks)
    labels = {"app": NAME, NAME: "true"}
    return api_client_pod(NAMESPACE, NAME, NAME, image, told, CONTROLLER_MANAGER_PORT, labels, "60m", "200Mi")
