"""falsework test: the project's own tests, from a checkout."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from falsework.errors import UsageError

ROOT = Path(__file__).parents[3]
SUITES = ("unit", "component", "cluster")
SOAK = "soak"
"""Whole virtual hosts: too slow to be part of `all`."""
MACHINES = (
    "bootstrap/test_bootstrap_machine.py",
    "helper/test_helper_machine.py",
    "lab",
    "machines",
    "operators/test_flannel.py",
    "release",
    "stages",
)
"""The component tests that make machines or what machines are made of. Some compare the host before and after, so they
run one after the other. All others run at the same time: while these wait for machines, those use the processors."""
FAILED = "FAILED"
MEMORY = "/dev/shm"


def register(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "part",
        nargs="?",
        choices=("all", "lint", *SUITES, SOAK),
        default="all",
        help="unit takes seconds, component starts real daemons, cluster a whole cluster (default: all, "
        "which is not soak: that boots virtual hosts of other kinds)",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to pytest")


def run(options: argparse.Namespace) -> int:
    if not (ROOT / "tests").is_dir():
        raise UsageError("the tests are not part of an installed Falsework", fix="run ./falsework test in a checkout")
    parts = ("lint", *SUITES) if options.part == "all" else (options.part,)
    results: list[tuple[str, float, str]] = []
    for part in parts:
        started = time.monotonic()
        outcome = _run_part(part, options.arguments)
        results.append((part, time.monotonic() - started, outcome))
        if outcome == FAILED:
            break
    for part, seconds, outcome in results:
        print(f"{part:<10} {seconds:7.1f} s  {outcome}", flush=True)
    return 1 if outcome == FAILED else 0


def _run_part(part: str, arguments: list[str]) -> str:
    steps = _steps(part, arguments)
    if not steps:
        return "has no tests yet"
    env = dict(os.environ)
    if part == "unit" and os.access(MEMORY, os.W_OK):
        # They write thousands of small files for good; on a busy disk that would be most of their time.
        env["PYTEST_DEBUG_TEMPROOT"] = MEMORY
    return "passed" if all(_run_side_by_side(commands, env) for commands in steps) else FAILED


def _run_side_by_side(commands: list[list[str]], env: dict[str, str]) -> bool:
    """The first is seen at work; what the others said is shown when they have ended."""
    with contextlib.ExitStack() as stack:
        said = [None, *(stack.enter_context(tempfile.TemporaryFile()) for _ in commands[1:])]
        children = [
            stack.enter_context(subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, env=env, stdout=output))
            for command, output in zip(commands, said, strict=True)
        ]
        for child, output in zip(children, said, strict=True):
            child.wait()
            if output is not None:
                output.seek(0)
                shutil.copyfileobj(output, sys.stdout.buffer)
        return not any(child.returncode for child in children)


def _steps(part: str, arguments: list[str]) -> list[list[list[str]]]:
    """One after the other; each is the commands that run at the same time."""
    if part == "lint":
        return [[["ruff", "check", "."]], [["ruff", "format", "--check", "."]], [["mypy"]]]
    folder = f"tests/{part}"
    if not any((ROOT / folder).rglob("test_*.py")):
        return []
    if part == "component" and not arguments:
        machines = [f"{folder}/{name}" for name in MACHINES]
        return [[["pytest", folder, *(f"--ignore={path}" for path in machines)], ["pytest", *machines]]]
    return [[["pytest", folder, *arguments]]]
