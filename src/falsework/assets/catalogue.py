"""All assets of a site, and the way in for the other rooms.

create(site, folder, Step.ALL)      make what is missing, outdated or about to expire
certificates_in(site, folder)       the calendar
good_until(folder, path)            until when a file may be given to a machine
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from falsework.assets import certificates, identity, ignition_configs, manifests
from falsework.assets.expiry import expiry_of
from falsework.assets.graph import Asset, Graph, Report, State
from falsework.assets.payload import DEFAULT_PAYLOAD, Payload
from falsework.assets.pki import Subject, is_signed_by, issuer_of, life_of, load_certificates, subject_of, utc_now
from falsework.errors import UsageError
from falsework.site.model import Distribution, Site


class Step(StrEnum):
    """How far `create` goes."""

    MANIFESTS = "manifests"
    IGNITION_CONFIGS = "ignition-configs"
    ALL = "all"


def assets_of(site: Site, payload: Payload = DEFAULT_PAYLOAD) -> list[Asset]:
    """Every asset, each after what it needs."""
    return [
        identity.metadata_asset(site.cluster_name),
        identity.password_asset(),
        identity.ssh_key_asset(),
        *certificates.certificate_assets(site),
        *certificates.key_assets(site.key_algorithm),
        ignition_configs.kubeconfig_asset(site),
        *manifests.manifest_assets(site, payload),
        *ignition_configs.pointer_assets(site),
        *ignition_configs.rendered_assets(site, payload),
        ignition_configs.bootstrap_asset(site, payload),
        *ignition_configs.machine_assets(site, payload),
    ]


def create(
    site: Site,
    folder: Path,
    step: Step = Step.ALL,
    *,
    complete: bool = False,
    payload: Payload = DEFAULT_PAYLOAD,
    clock: Callable[[], datetime] = utc_now,
    when_busy: Callable[[str], None] = print,
) -> Report:
    """Bring the folder's assets up to date. `complete` adds the configs that need no Machine Config Server;
    once made, they are kept up to date without asking."""
    graph = _graph(site, folder, payload, clock)
    return graph.bring_up_to_date(_targets(graph, step, complete), when_busy)


def preview(
    site: Site,
    folder: Path,
    step: Step = Step.ALL,
    *,
    payload: Payload = DEFAULT_PAYLOAD,
    clock: Callable[[], datetime] = utc_now,
) -> Report:
    """What `create` would do now. Touches nothing."""
    graph = _graph(site, folder, payload, clock)
    return graph.preview(_targets(graph, step, complete=False))


def _graph(site: Site, folder: Path, payload: Payload, clock: Callable[[], datetime]) -> Graph:
    _check_that_they_are_ours(site, folder)
    return Graph(assets_of(site, payload), folder, clock)


def _check_that_they_are_ours(site: Site, folder: Path) -> None:
    if site.distribution is Distribution.OPENSHIFT:
        raise UsageError(
            "this site's distribution is openshift, whose assets only its own installer can make",
            fix=f"run `openshift-install create ignition-configs --dir {folder}`",
        )


def _targets(graph: Graph, step: Step, complete: bool) -> list[str]:
    complete = complete or any(name.startswith("complete/") for name in State.load(graph.folder).assets)
    return [name for name in graph.assets if _is_target(name, step, complete)]


def _is_target(name: str, step: Step, complete: bool) -> bool:
    if step is Step.MANIFESTS:
        return name.startswith(("manifests/", "openshift/"))
    return complete or not name.startswith("complete/")


def good_until(folder: Path, path: str) -> datetime | None:
    """When what is in a file expires, or None if it never does.

    Whoever gives a file to a machine asks this first: nothing that has expired is ever served.
    """
    return expiry_of((folder / path).read_bytes())


@dataclass(frozen=True)
class Entry:
    """A line of the calendar. Without dates the certificate has not been made yet."""

    name: str
    subject: Subject
    signer: str
    goes_to: tuple[str, ...]
    valid_for_days: int
    not_before: datetime | None = None
    not_after: datetime | None = None
    renew_at: datetime | None = None
    problem: str | None = None


def certificates_in(site: Site, folder: Path) -> list[Entry]:
    """Every certificate of the site as it is in the folder. Reads certificates only, never a key."""
    _check_that_they_are_ours(site, folder)
    found = {}
    entries = []
    for row in certificates.rows(site):
        planned = Entry(row.name, row.subject, row.signer or "itself", row.goes_to, row.validity.value)
        try:
            certificate = load_certificates((folder / row.certificate_path).read_bytes())[0]
        except (FileNotFoundError, NotADirectoryError):
            entries.append(planned)
            continue
        except (ValueError, PermissionError):
            entries.append(dataclasses.replace(planned, problem="cannot be read"))
            continue
        found[row.name] = certificate
        signer = found.get(row.signer) if row.signer else certificate
        life = life_of(certificate)
        stranger = f"signed by {issuer_of(certificate)}, which is not the {row.signer} at hand"
        entries.append(
            dataclasses.replace(
                planned,
                subject=subject_of(certificate),
                not_before=life.begins,
                not_after=life.ends,
                renew_at=life.renew_at,
                problem=None if signer and is_signed_by(certificate, signer) else stranger,
            )
        )
    return entries
