"""Where things are on the bootstrap machine. The names are OpenShift's."""

from __future__ import annotations

from pathlib import Path

HOME = Path("/opt/openshift")
FACTS = HOME / "bootstrap.json"
INVENTORY = HOME / "inventory.json"
"""This site's machines."""
TLS = HOME / "tls"
KUBECONFIG = HOME / "auth/kubeconfig"
"""Through the load balancer: it works before and after the masters take over."""
LOOPBACK_KUBECONFIG = HOME / "auth/kubeconfig-loopback"
"""To the API server of this machine."""
CLUSTER_MANIFESTS = HOME / "manifests"
MORE_MANIFESTS = HOME / "openshift"
BOOTSTRAP_MANIFESTS = HOME / "bootstrap-manifests"
"""Static pods that are made ready here and started together."""
OVERRIDES_PATCH = HOME / "original_cvo_overrides.patch"
DONE = HOME / ".bootkube.done"

KUBERNETES = Path("/etc/kubernetes")
STATIC_PODS = KUBERNETES / "manifests"
"""What the kubelet runs."""
SECRETS = KUBERNETES / "bootstrap-secrets"
"""Kubeconfigs of the temporary control plane; gone with it."""
MCS_TLS = Path("/etc/ssl/mcs")
MCS_CONFIG = Path("/etc/mcs")
MCS_STATE = Path("/var/lib/falsework/mcs")

ETCD_POD = STATIC_PODS / "etcd-member-pod.yaml"
MCS_POD = STATIC_PODS / "machineconfigoperator-bootstrap-pod.yaml"
