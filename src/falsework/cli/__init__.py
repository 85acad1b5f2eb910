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
    "wait-for": "Wait until the bootstrap is complete, as openshift-install does",
    "status": "Show how far the lab is and what it is waiting for",
    "destroy": "Remove everything that was made for the lab on this host",
    "ledger": "Show who asked the helper for what, and what came of it",
    "csr": "Show which machines ask for certificates and why one is not given; approve one",
    "balancer": "Show and drive the load balancer: state, drain, ready",
    "release": "Build, check and export everything that runs on the machines",
    "shell": "A shell in the lab's network, with kubectl and the other programs of the release",
    "kubectl": "Run the release's kubectl in the lab's network",
    "machine": "List, start, stop and kill machines, and read their consoles",
    "exec": "Run a command in a machine",
    "ssh": "Log in to a machine, or run a command there, by its SSH server",
    "forward": "Offer the lab's API server on a loopback port of this host",
    "conformance": "Run Kubernetes' own conformance tests against the lab's cluster",
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
    parser = argparse.ArgumentParser(
        prog="falsework",
        description="From bare machines to a self-hosted, highly available, OpenShift-shaped Kubernetes cluster.",
    )
    parser.add_argument("--version", action="version", version=f"falsework {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    module: Command | None = None
    for command, summary in COMMANDS.items():
        sub = commands.add_parser(command, help=summary, description=summary + ".")
        if command == name:
            module = importlib.import_module(f"falsework.cli.{command.replace('-', '_')}")
            module.register(sub)
    own = words
    passed_on: list[str] = []
    if isinstance(module, PassingOn):
        own, passed_on = split(words, module.OWN_WORDS)
    options = parser.parse_args(own)
    options.passed_on = passed_on
    assert module is not None, "argparse lets only known commands through"
    return module.run(options)


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
