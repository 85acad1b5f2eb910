"""falsework bench: the project's benchmarks, from a checkout."""

from __future__ import annotations

import argparse
import subprocess
import sys

from falsework.cli.test import ROOT
from falsework.errors import UsageError

BENCHMARKS = {
    "bootstrap": "power on of the bootstrap to an API behind the load balancer: where the seconds go",
    "create-all": "assets of the default site and of one with 500 workers: wall time, memory",
    "idle": "a cluster that nobody uses: CPU and memory of machines, programs and operators, with limits",
    "lab": "the helper, and six machines that boot at once: wall and CPU seconds, memory",
    "release": "the release from empty caches, warm, verified, and seeded into machines: wall and CPU seconds, disk",
    "up": "from up to a control plane that stands by itself, stage by stage, beside kubeadm on the same machines",
}


def register(parser: argparse.ArgumentParser) -> None:
    listed = "; ".join(f"{name}: {what}" for name, what in BENCHMARKS.items())
    parser.add_argument("name", choices=BENCHMARKS, help=listed)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the benchmark")


def run(options: argparse.Namespace) -> int:
    script = ROOT / "bench" / f"{options.name.replace('-', '_')}.py"
    if not script.is_file():
        raise UsageError("benchmarks are not part of an installed Falsework", fix="run ./falsework bench in a checkout")
    return subprocess.run([sys.executable, script, *options.arguments], check=False).returncode
