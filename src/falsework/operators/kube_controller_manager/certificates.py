"""The signer of the kubelets' certificates, which lives for a day at first. Names are OpenShift's.

The kube-apiserver operator sees the successor in openshift-config-managed/csr-controller-ca and has the API servers
trust it; only then is it given to the controller managers.
"""

from __future__ import annotations

from falsework.operators.certificates.table import Place, Signer, Table
from falsework.operators.kube_controller_manager.pod import NAMESPACE

TABLE = Table(
    signers=(
        Signer(
            current=Place(NAMESPACE, "csr-signer"),
            successor=Place(f"{NAMESPACE}-operator", "csr-signer"),
            bundles=(Place("openshift-config-managed", "csr-controller-ca"),),
            trusted_as=("client-ca", "kubelet-serving-ca"),
        ),
    ),
)
