"""approve-csr.service: the certificate requests of this site's machines, while the bootstrap machine is at work.

The rules are in `falsework.csr`. Here is where this machine has what they need to know.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from falsework.bootstrap import mcs_records, places
from falsework.bootstrap.records import Records
from falsework.bootstrap.service import run_service, say
from falsework.csr import decisions
from falsework.csr.approver import Approver
from falsework.csr.knowledge import Fetched, machines_in
from falsework.errors import FalseworkError
from falsework.kube.client import Client

SERVED = Path(mcs_records.FOLDER) / mcs_records.SERVED
UNIT = "approve-csr"


@dataclass(frozen=True)
class Settings:
    kubeconfig: Path
    inventory: Path
    served: Path
    decisions: Path
    done: Path
    forever: bool


def main(words: Sequence[str]) -> int:
    settings = _settings(words)
    return run_service(UNIT, lambda records: approve(settings, records))


def approve(settings: Settings, records: Records) -> None:
    try:
        machines = machines_in(settings.inventory.read_bytes())
    except OSError as error:
        raise FalseworkError(f"{settings.inventory} cannot be read", cause=str(error.strerror)) from None
    client = Client.from_kubeconfig(settings.kubeconfig)
    fetched = Fetched.in_this_boot(settings.served)
    with records.stage("approve-csr"):
        end = "for as long as this runs" if settings.forever else "until bootstrapping is complete"
        say(f"Approving the CSR requests of this site's {len(machines)} machines {end}...")
        Approver(client, machines, fetched, settings.decisions, say).run(
            lambda: not settings.forever and settings.done.exists()
        )
        say("Bootstrapping is complete: no more CSR requests are approved here.")


def _settings(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(
        prog=UNIT, description="Approve the certificate requests of this site's machines, and nobody else's."
    )
    parser.add_argument("kubeconfig", type=Path, nargs="?", default=places.LOOPBACK_KUBECONFIG)
    parser.add_argument("--inventory", type=Path, default=places.INVENTORY, help="the machines of the site")
    parser.add_argument("--served", type=Path, default=SERVED, help="who has fetched its config")
    parser.add_argument(
        "--decisions", type=Path, default=Path(decisions.PATH), help="where to write what was decided and why"
    )
    parser.add_argument("--done", type=Path, default=places.DONE, help="the file whose appearance ends this")
    parser.add_argument("--forever", action="store_true", help="do not end when bootstrapping is complete")
    return Settings(**vars(parser.parse_args(words)))
