"""etcd-operator: the program."""

from __future__ import annotations

from falsework.kube.resources import ETCDS
from falsework.operators.etcd.controllers import EtcdOperator
from falsework.operators.runtime.main import operator_main

NAME = "etcd-operator"
NAMESPACE = "openshift-etcd-operator"
PORT = 9101


def main(words: list[str]) -> int:
    return operator_main(
        NAME,
        NAMESPACE,
        words,
        lambda program: EtcdOperator(program).add_controllers(),
        port=PORT,
        resource=ETCDS,
    )
