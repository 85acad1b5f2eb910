"""The image registry operator as a program."""

from __future__ import annotations

from falsework.kube.resources import IMAGE_REGISTRIES
from falsework.manifests.operators.image_registry import CLUSTER_OPERATOR, NAME, NAMESPACE, PORT
from falsework.operators.image_registry.controller import add_registry
from falsework.operators.runtime.main import operator_main


def main(words: list[str]) -> int:
    return operator_main(
        NAME,
        NAMESPACE,
        words,
        add_registry,
        port=PORT,
        resource=IMAGE_REGISTRIES,
        cluster_operator=CLUSTER_OPERATOR,
    )
