"""wait-for install-complete: the lines, limits and exit codes people's scripts know; never a password."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from told_cluster import ToldCluster, Waiting

from falsework.checks.install_complete import (
    AT_REST,
    INITIALIZE_LIMIT,
    STABLE_LIMIT,
    InstallComplete,
    InstallFailed,
    OperatorsNotStable,
)
from falsework.kube.resources import CLUSTER_OPERATORS, CLUSTER_VERSIONS

GOOD = {"Available": "True", "Failing": "False", "Progressing": "False"}


def at_rest(cluster: ToldCluster, name: str, seconds: float) -> None:
    cluster.has_operator(name, Available="True", Progressing="False")
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    for entry in cluster.objects[CLUSTER_OPERATORS][name]["status"]["conditions"]:
        entry["lastTransitionTime"] = since.strftime("%Y-%m-%dT%H:%M:%SZ")


def wait(cluster: ToldCluster, told: Waiting) -> None:
    say, complain = told.lines.append, told.errors.append
    InstallComplete(cluster, say, complain, clock=told.clock, pause=told.pause, folder=Path("/site")).wait()


def test_its_lines_are_those_of_openshift_install() -> None:
    cluster = ToldCluster()
    cluster.has(CLUSTER_VERSIONS, "version", {"Available": "False", "Progressing": "True"})
    cluster.has_operator("dns", Available="True", Progressing="True")

    def meanwhile(now: float) -> None:
        if now > 60:
            cluster.has(CLUSTER_VERSIONS, "version", GOOD)
        if now > 90:
            at_rest(cluster, "dns", AT_REST + 2)

    told = Waiting(meanwhile)
    wait(cluster, told)
    clock = r"\(until \d{1,2}:\d\d[AP]M UTC\)"
    told.was_told(
        rf"Waiting up to 40m0s {clock} for the cluster at https://api\.lab\.falsework\.test:6443 to initialize\.\.\.",
        rf"Waiting up to 30m0s {clock} to ensure each cluster operator has finished progressing\.\.\.",
        r"All cluster operators have completed progressing",
        r"Install complete!",
        r"To access the cluster as the system:admin user when using 'oc', run",
        r"    export KUBECONFIG=/site/auth/kubeconfig",
        r'The password of the user "kubeadmin" is in /site/auth/kubeadmin-password',
        r"Time elapsed: 1m30s",
    )


def test_a_cluster_that_does_not_initialize() -> None:
    cluster = ToldCluster()
    cluster.has_operator("dns", Available="False")
    cluster.has(CLUSTER_VERSIONS, "version", {"Available": "False", "Progressing": "True"})
    told = Waiting()
    with pytest.raises(InstallFailed, match=r"Cluster initialization failed") as failed:
        wait(cluster, told)
    assert failed.value.exit_code == 6
    assert "the cluster version is not available" in str(failed.value.cause)
    assert told.errors == ["Cluster operator dns Available is False with R: m"]
    assert INITIALIZE_LIMIT < told.now < INITIALIZE_LIMIT + 2


def test_an_operator_that_has_only_just_come_to_rest() -> None:
    cluster = ToldCluster()
    cluster.has(CLUSTER_VERSIONS, "version", GOOD)
    told = Waiting(lambda _: at_rest(cluster, "dns", 5))
    at_rest(cluster, "etcd", 100)
    at_rest(cluster, "dns", 5)
    with pytest.raises(OperatorsNotStable) as failed:
        wait(cluster, told)
    assert failed.value.exit_code == 7
    assert str(failed.value.cause).endswith("dns")
    assert told.now > STABLE_LIMIT
