"""Which certificates the kube-apiserver operator renews. Names are OpenShift's."""

from __future__ import annotations

from falsework.operators.certificates.table import Followed, Leaf, Place, Signer, Table
from falsework.operators.kube_apiserver.pod import NAMESPACE

OPERATOR_NAMESPACE = "openshift-kube-apiserver-operator"
CSR_CA = Place("openshift-config-managed", "csr-controller-ca")
"""Whom the controller manager lets sign the kubelets' requests."""

_LOCALHOST = Place(OPERATOR_NAMESPACE, "localhost-serving-signer")
_SERVICE_NETWORK = Place(OPERATOR_NAMESPACE, "service-network-serving-signer")
_LOAD_BALANCER = Place(OPERATOR_NAMESPACE, "loadbalancer-serving-signer")
_TO_KUBELET = Place(OPERATOR_NAMESPACE, "kube-apiserver-to-kubelet-signer")
_CONTROL_PLANE = Place(OPERATOR_NAMESPACE, "kube-control-plane-signer")
_AGGREGATOR = Place(OPERATOR_NAMESPACE, "aggregator-client-signer")


def _own(name: str) -> Place:
    return Place(NAMESPACE, name)


def _replaced(signer: Place, bundle: str) -> Signer:
    return Signer(signer, Place(signer.namespace, f"next-{signer.name}"), (_own(bundle),), (bundle,))


TABLE = Table(
    signers=(_replaced(_AGGREGATOR, "aggregator-client-ca"), _replaced(_CONTROL_PLANE, "client-ca")),
    leaves=(
        Leaf(_own("localhost-serving-cert-certkey"), _LOCALHOST),
        Leaf(_own("service-network-serving-certkey"), _SERVICE_NETWORK),
        Leaf(_own("external-loadbalancer-serving-certkey"), _LOAD_BALANCER),
        Leaf(_own("internal-loadbalancer-serving-certkey"), _LOAD_BALANCER),
        Leaf(_own("kubelet-client"), _TO_KUBELET),
        Leaf(_own("aggregator-client"), _AGGREGATOR),
        Leaf(Place("openshift-kube-controller-manager", "kube-controller-manager-client-cert-key"), _CONTROL_PLANE),
        Leaf(Place("openshift-kube-scheduler", "kube-scheduler-client-cert-key"), _CONTROL_PLANE),
    ),
    lasting=(_LOCALHOST, _SERVICE_NETWORK, _LOAD_BALANCER, _TO_KUBELET),
    followed=(Followed(CSR_CA, (_own("client-ca"), _own("kubelet-serving-ca"))),),
)
