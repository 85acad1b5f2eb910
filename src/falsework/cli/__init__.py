"""The command line: one module per command group, imported only when it is asked for."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from falsework import __version__
from falsework.cli.passing_on import split
from falsework.errors import FalseworkError

COMMANDS = {
    "init": "Write install-config.yaml and site.yaml, with comments, from a few answers",
    "validate": "Check install-config.yaml and site.yaml, and say all that is wrong with them",
    "plan": "Show what would be made and where everything will be, touching nothing",
    "create": "Make manifests, certificates and Ignition configs",
    "certs": "Show when which certificate expires",
    "render": "Print the facts of a site as configuration of DNS, DHCP, load balancer, firewall and more",
    "up": "Bring the lab up, stage by stage, from wherever it stands",
    "wait-for": "Wait until the bootstrap, or the installation, is complete, as openshift-install does",
    "status": "Show how far the lab is and what it is waiting for",
    "verify": "Prove that the cluster does what it should: every check of the guides, and more",
    "destroy": "Remove everything that was made for the lab on this host",
    "ledger": "Show who asked the helper for what, and what came of it",
    "csr": "Show which machines ask for certificates and why one is not given; approve one",
    "balancer": "Show and drive the load balancer: state, drain, ready",
    "release": "Build, check and export everything that runs on the machines",
    "shell": "A shell in the lab's network, with kubectl and the other programs of the release",
    "kubectl": "Run the release's kubectl in the lab's network",
    "kubeconfig": "Print the administrator's kubeconfig, or put it into that of this host's kubectl",
    "machine": "List, start, stop and kill machines, and read their consoles",
    "node": "Add workers to the running cluster, and remove them",
    "exec": "Run a command in a machine",
    "ssh": "Log in to a machine, or run a command there, by its SSH server",
    "forward": "Offer the lab's API server on a loopback port of this host",
    "conformance": "Run Kubernetes' own conformance tests against the lab's cluster",
    "completion": "Print a script with which bash, zsh or fish completes these commands",
    "test": "Run Falsework's own tests",
    "bench": "Run one of Falsework's benchmarks",
}


class Command(Protocol):
    """What a module in this package offers."""

    def register(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int: ...


@runtime_checkable
class PassingOn(Command, Protocol):
    """What a module offers whose command hands words on to another program as they are."""

    OWN_WORDS: int
    """How many words without a dash are our own, before the other program's begin."""


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    try:
        return _dispatch(words)
    except FalseworkError as error:
        print(f"falsework: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("falsework: interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of our output is gone; nobody is left to tell, and the interpreter must not try at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:  # noqa: BLE001 - the last door: a person never sees a traceback
        print(f"falsework: {_unexpected(error)}", file=sys.stderr)
        return 70


def _dispatch(words: list[str]) -> int:
    name = words[0] if words else None
    module = _module(name) if name in COMMANDS else None
    own = words
    passed_on: list[str] = []
    if isinstance(module, PassingOn):
        own, passed_on = split(words, module.OWN_WORDS)
    options = _parser({name: module} if name and module else {}).parse_args(own)
    options.passed_on = passed_on
    assert module is not None, "argparse lets only known commands through"
    return module.run(options)


def full_parser() -> argparse.ArgumentParser:
    """With everything every command takes."""
    return _parser({command: _module(command) for command in COMMANDS})


def _module(command: str) -> Command:
    module: Command = importlib.import_module(f"falsework.cli.{command.replace('-', '_')}")
    return module


def _parser(modules: Mapping[str, Command]) -> argparse.ArgumentParser:
    """Knows the summaries of all commands, and what these modules' take."""
    parser = argparse.ArgumentParser(
        prog="falsework",
        description="From bare machines to a self-hosted, highly available, OpenShift-shaped Kubernetes cluster.",
    )
    parser.add_argument("--version", action="version", version=f"falsework {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, summary in COMMANDS.items():
        sub = commands.add_parser(command, help=summary, description=summary + ".")
        if command in modules:
            modules[command].register(sub)
    return parser


def _unexpected(error: Exception) -> FalseworkError:
    details = "".join(traceback.format_exception(error))
    where = "nowhere: the temporary folder is not writable"
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile("w", prefix="falsework-error-", suffix=".log", delete=False) as file,
    ):
        file.write(details)
        where = file.name
    return FalseworkError(
        f"this should not have happened: {type(error).__name__}: {error}",
        cause="a fault in Falsework itself",
        fix=f"run the same command again; if it fails again, report it with {where}",
    )
