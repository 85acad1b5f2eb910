"""Reading what the installer told the bootstrap machine."""

from __future__ import annotations

from pathlib import Path

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.bootstrap import places
from falsework.errors import FalseworkError


def load_facts(path: Path = places.FACTS) -> BootstrapFacts:
    try:
        return BootstrapFacts.from_json(path.read_bytes())
    except OSError as error:
        cause = str(error.strerror)
    except (ValueError, TypeError, KeyError) as error:
        cause = f"{type(error).__name__}: {error}"
    raise FalseworkError(
        f"{path} cannot be used",
        cause=cause,
        fix="make the bootstrap's Ignition config anew and start the machine from it",
    )
