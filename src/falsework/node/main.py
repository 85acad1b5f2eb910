"""machine-config-daemon, as a program."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from falsework.errors import UsageError
from falsework.node.daemon import add_installers
from falsework.node.static_pods import StaticPods
from falsework.operators.runtime.main import operator_main
from falsework.operators.runtime.program import Program

NAME, NAMESPACE, PORT = "machine-config-daemon", "openshift-machine-config-operator", 9108


def main(words: list[str]) -> int:
    return operator_main(
        NAME, NAMESPACE, words, _build, port=PORT, resource=None, kind="DaemonSet", leads=False, arguments=_arguments
    )


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="this node's name (default: NODE_NAME)")
    parser.add_argument(
        "--root", type=Path, default=Path("/etc/kubernetes"), help="where it writes (default: /etc/kubernetes)"
    )


def _build(program: Program) -> None:
    if not program.options.node:
        raise UsageError("nobody says which node this is", fix="set NODE_NAME, or give --node")
    add_installers(program, program.options.node, StaticPods(program.options.root))
