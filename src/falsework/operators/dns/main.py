"""The dns operator as a program."""

from __future__ import annotations

from falsework.kube.resources import OPERATOR_DNSES
from falsework.manifests.operators.dns import NAME, NAMESPACE, OBJECT, PORT
from falsework.operators.dns.controller import add_dns
from falsework.operators.runtime.main import operator_main


def main(words: list[str]) -> int:
    return operator_main(NAME, NAMESPACE, words, add_dns, port=PORT, resource=OPERATOR_DNSES, object_name=OBJECT)
