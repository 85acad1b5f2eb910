"""The storage operator as a program."""

from __future__ import annotations

from falsework.kube.resources import STORAGES
from falsework.manifests.operators.storage import CLUSTER_OPERATOR, NAME, NAMESPACE, PORT
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program
from falsework.operators.storage.storage_class import add_storage_class
from falsework.operators.storage.volumes import add_volumes


def main(words: list[str]) -> int:
    return operator_main(NAME, NAMESPACE, words, build, port=PORT, resource=STORAGES, cluster_operator=CLUSTER_OPERATOR)


def build(program: Program) -> None:
    add_storage_class(program)
    add_volumes(program)
