"""The network operator as a program."""

from __future__ import annotations

from falsework.kube.resources import OPERATOR_NETWORKS
from falsework.manifests.operators.network import NAME, NAMESPACE, PORT
from falsework.operators.network.controller import add_flannel
from falsework.operators.runtime.main import operator_main


def main(words: list[str]) -> int:
    return operator_main(NAME, NAMESPACE, words, add_flannel, port=PORT, resource=OPERATOR_NETWORKS)
