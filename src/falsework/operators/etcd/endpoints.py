"""ConfigMap openshift-etcd/etcd-endpoints: where the API servers find etcd."""

from __future__ import annotations

from urllib.parse import urlsplit

from falsework.etcd.members import Member, View
from falsework.etcd.settings import BOOTSTRAP_MEMBER
from falsework.kube.client import Object
from falsework.operators.etcd.membership import Masters
from falsework.operators.etcd.pod import NAMESPACE

NAME = "etcd-endpoints"
BOOTSTRAP_ANNOTATION = "alpha.installer.openshift.io/etcd-bootstrap"


def endpoints(view: View, masters: Masters) -> Object:
    """Voters on masters only: a learner answers no one, and the bootstrap's member will go. Where that one is, is said
    as long as it is there."""
    voters = [member for member in view.voters if member.is_started and masters.owner_of(member)]
    bootstrap = view.named(BOOTSTRAP_MEMBER)
    annotations = {BOOTSTRAP_ANNOTATION: _address(bootstrap)} if bootstrap is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": annotations},
        "data": {member.hex: _address(member) for member in voters},
    }


def _address(member: Member) -> str:
    return urlsplit(member.peer_urls[0]).hostname or ""
