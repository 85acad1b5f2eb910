"""progress.service: tells the cluster that the bootstrap is complete, once it is."""

from __future__ import annotations

import argparse

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.bootstrap import pivot, places
from falsework.bootstrap.facts import load_facts
from falsework.bootstrap.records import Records
from falsework.bootstrap.service import run_service, say
from falsework.bootstrap.waiting import Wait
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client
from falsework.kube.resources import CONFIG_MAPS

_PAUSE = 0.1


def main(words: list[str]) -> int:
    argparse.ArgumentParser(prog="report-progress", description=__doc__).parse_args(words)
    return run_service("progress", _run)


def _run(records: Records) -> None:
    facts = load_facts()
    wait = Wait(say, pause=_PAUSE)
    with records.stage("wait-for-bootstrap-complete"):
        say("Waiting for bootstrap to complete...")
        wait.until("bootkube", lambda: None if places.DONE.exists() else f"{places.DONE} is not there yet")
    with records.stage("report-bootstrap-complete"):
        report(Client.from_kubeconfig(places.KUBECONFIG), facts, wait)


def report(client: Client, facts: BootstrapFacts, wait: Wait) -> None:
    if facts.control_plane_replicas >= 3:
        wait.until("two masters' API servers", lambda: pivot.revisions_missing(client))
    say("Reporting install progress...")
    wait.until("kube-system/bootstrap", lambda: _unreported(client))


def _unreported(client: Client) -> str | None:
    """What everybody asks who wants to know whether the bootstrap is over."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bootstrap", "namespace": "kube-system"},
        "data": {"status": "complete"},
    }
    try:
        client.create(CONFIG_MAPS, body)
    except ApiError as error:
        return None if error.is_conflict else error.one_line
    except FalseworkError as error:
        return error.one_line
    return None
