"""What Falsework's code in a machine can be started as. Each is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys

ENTRY_POINTS = {
    "approve-csr": "falsework.bootstrap.approver",
    "boot-server": "falsework.helper.bootserver",
    "bootkube": "falsework.bootstrap.bootkube",
    "machine-config-server": "falsework.bootstrap.machine_config_server",
    "release-image": "falsework.bootstrap.release_image",
    "report-progress": "falsework.bootstrap.report_progress",
}
"""Name → module with a `main(words)` that gives back the exit code. It may import the standard library
alone, and PyYAML where that is at hand: on the bootstrap machine, and in Falsework's image."""

POD_ENTRY_POINTS = {
    "cluster-image-registry-operator": "falsework.operators.image_registry.main",
    "cluster-machine-config-server": "falsework.operators.machine_config.config_server",
    "cluster-storage-operator": "falsework.operators.storage.main",
    "cluster-version-operator": "falsework.operators.cluster_version.main",
    "cni-config": "falsework.operators.network.cni_config",
    "dns-operator": "falsework.operators.dns.main",
    "etcd-member": "falsework.operators.etcd.member",
    "etcd-operator": "falsework.operators.etcd.main",
    "ingress-operator": "falsework.operators.ingress.main",
    "kube-apiserver-operator": "falsework.operators.kube_apiserver.main",
    "kube-controller-manager-operator": "falsework.operators.kube_controller_manager.main",
    "kube-scheduler-operator": "falsework.operators.kube_scheduler.main",
    "machine-approver": "falsework.operators.machine_approver.operator",
    "machine-config-daemon": "falsework.node.main",
    "machine-config-operator": "falsework.operators.machine_config.operator",
    "network-operator": "falsework.operators.network.main",
    "node-ca": "falsework.operators.image_registry.node_ca",
    "router": "falsework.operators.router.main",
    "volume-folder": "falsework.operators.storage.volume_folder",
}
"""The same for pods of Falsework's own image. All of Falsework is there, so these are not in the machines' file."""


def main(words: list[str]) -> int:
    known = ENTRY_POINTS | POD_ENTRY_POINTS
    if not words or words[0] not in known:
        print(f"falsework: say which: {', '.join(sorted(known))}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(known[words[0]]).main(words[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
