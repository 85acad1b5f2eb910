"""The first half of bootkube: everything the temporary control plane needs, put where it is looked for.

Two pods start at once, because they need nobody: the Machine Config Server and etcd. The others are made ready beside
the kubelet's folder: the API server starts when etcd is healthy, its clients as soon as it answers. Earlier they could
only ask in vain, and take the processor from whom they wait for.
"""

from __future__ import annotations

from collections.abc import Callable

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.assets.serialize import to_yaml
from falsework.bootstrap import places, static_pods
from falsework.bootstrap.cluster_secrets import cluster_secrets
from falsework.bootstrap.disk import Disk
from falsework.errors import FalseworkError
from falsework.manifests.objects import Manifests

API_POD = "kube-apiserver-pod.yaml"
TEMPORARY: dict[str, Callable[[BootstrapFacts], static_pods.Pod]] = {
    API_POD: static_pods.kube_apiserver,
    "kube-controller-manager-pod.yaml": static_pods.kube_controller_manager,
    "kube-scheduler-pod.yaml": static_pods.kube_scheduler,
    "bootstrap-pod.yaml": static_pods.cluster_version_operator,
}
"""The pods that are taken down together, by file name."""

_POD_MODE = 0o600
_WRITTEN_TO = (
    places.HOME,
    places.CLUSTER_MANIFESTS,
    places.STATIC_PODS,
    places.BOOTSTRAP_MANIFESTS,
    places.SECRETS,
    places.MCS_TLS,
)


class Rendering:
    def __init__(self, disk: Disk, facts: BootstrapFacts) -> None:
        self._disk = disk
        self._facts = facts

    def move_manifests(self) -> None:
        """One folder holds all that the cluster is to be given."""
        for path in self._disk.files(places.MORE_MANIFESTS):
            target = places.CLUSTER_MANIFESTS / path.name
            if self._disk.has(target):
                raise FalseworkError(
                    f"{path} and {target} have the same name",
                    cause="both are to be applied, and one would replace the other",
                    fix=f"rename one of the two; then: systemctl restart bootkube ({path.parent} is looked at again)",
                )
            self._disk.move(path, target)

    def machine_config_server(self) -> None:
        for ending, mode in (("crt", 0o644), ("key", 0o600)):
            content = self._disk.read(places.TLS / f"machine-config-server.{ending}")
            self._disk.write(places.MCS_TLS / f"tls.{ending}", content, mode)
        self._disk.write(places.MCS_POD, to_yaml(static_pods.machine_config_server(self._facts)), _POD_MODE)
        # What is served now the cluster is to have as objects later: it may hold a pull secret.
        for folder, kind in (("machine-pools", "machineconfigpool"), ("machine-configs", "machineconfig")):
            for path in self._disk.files(places.MCS_CONFIG / "bootstrap" / folder):
                target = places.CLUSTER_MANIFESTS / f"{path.stem}.{kind}.yaml"
                self._disk.write(target, self._disk.read(path), 0o600)

    def cluster_manifests(self, manifests: Manifests, mode: int = 0o644) -> None:
        """What the release has for every cluster. A file of the same name that a person put there is theirs."""
        for name, objects in manifests.items():
            if not self._disk.has(places.CLUSTER_MANIFESTS / name):
                self._disk.write(places.CLUSTER_MANIFESTS / name, to_yaml(*objects), mode)

    def cluster_secrets(self) -> None:
        """What the masters' control plane is started with. For root alone."""
        self.cluster_manifests(cluster_secrets(self._disk, self._facts), 0o600)

    def etcd(self) -> None:
        self._disk.write(places.ETCD_POD, to_yaml(static_pods.etcd(self._facts)), _POD_MODE)

    def temporary_pod(self, name: str) -> None:
        self._disk.write(places.BOOTSTRAP_MANIFESTS / name, to_yaml(TEMPORARY[name](self._facts)), _POD_MODE)

    def start_api(self) -> None:
        self._start(API_POD)

    def start_clients(self) -> None:
        """What they come to the API with, then the pods."""
        loopback = self._disk.read(places.LOOPBACK_KUBECONFIG)
        for name, content in static_pods.kubeconfigs(loopback).items():
            self._disk.write(places.SECRETS / name, content, 0o600)
        for name in TEMPORARY:
            self._start(name)

    def _start(self, name: str) -> None:
        """A pod that runs already is left as it is."""
        self._disk.write(places.STATIC_PODS / name, self._disk.read(places.BOOTSTRAP_MANIFESTS / name), _POD_MODE)

    def stop_temporary(self) -> None:
        """The API server last: the others end while they can still say so. etcd stays, and so does the MCS."""
        for name in reversed(TEMPORARY):
            self._disk.remove(places.STATIC_PODS / name)
        self._disk.remove(places.SECRETS)

    def stop_machine_config_server(self) -> None:
        self._disk.remove(places.MCS_POD)

    def clean(self) -> None:
        """Of what a killed run left, nothing is used: a draft becomes a file by its name alone."""
        for folder in _WRITTEN_TO:
            self._disk.remove_drafts(folder)
