"""falsework test: the project's own tests, from a checkout."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from falsework.errors import UsageError

ROOT = Path(__file__).parents[3]
SUITES = ("unit", "component", "cluster")
SOAK = "soak"
"""Whole virtual hosts: too slow to be part of `all`."""
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
    commands = _commands(part, arguments)
    if not commands:
        return "has no tests yet"
    env = dict(os.environ)
    if part == "unit" and os.access(MEMORY, os.W_OK):
        # They write thousands of small files for good; on a busy disk that would be most of their time.
        env["PYTEST_DEBUG_TEMPROOT"] = MEMORY
    for command in commands:
        if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=env, check=False).returncode != 0:
            return FAILED
    return "passed"


def _commands(part: str, arguments: list[str]) -> list[list[str]]:
    if part == "lint":
        return [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]]
    if not any((ROOT / "tests" / part).rglob("test_*.py")):
        return []
    return [["pytest", f"tests/{part}", *arguments]]
