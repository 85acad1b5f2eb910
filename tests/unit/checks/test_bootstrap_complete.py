"""wait-for bootstrap-complete: the lines, limits and exit code people's scripts know."""

from __future__ import annotations

import pytest
from told_cluster import ToldCluster, Waiting

from falsework.checks.bootstrap_complete import API_LIMIT, COMPLETE_LIMIT, BootstrapComplete, BootstrapFailed
from falsework.kube.client import Unreachable


def wait(cluster: ToldCluster, told: Waiting) -> None:
    BootstrapComplete(cluster, told.lines.append, told.errors.append, clock=told.clock, pause=told.pause).wait()


def test_its_lines_are_those_of_openshift_install() -> None:
    cluster = ToldCluster()
    cluster.client.answers = [(503, b""), *cluster.client.answers]
    cluster.trouble = Unreachable("not yet")

    def meanwhile(now: float) -> None:
        cluster.trouble = None if now > 10 else cluster.trouble
        if now > 65:
            cluster.has_complete()
        if now > 3700:
            cluster.has_etcd(EtcdBootstrapMemberRemoved="True")

    told = Waiting(meanwhile)
    cluster.has_etcd(EtcdBootstrapMemberRemoved="False")
    wait(cluster, told)
    clock = r"\(until \d{1,2}:\d\d[AP]M UTC\)"
    told.was_told(
        rf"Waiting up to 20m0s {clock} for the Kubernetes API at https://api\.lab\.falsework\.test:6443\.\.\.",
        r"API v1\.2\.3 up",
        rf"Waiting up to 45m0s {clock} for bootstrapping to complete\.\.\.",
        r"Waiting for the bootstrap etcd member to be removed\.\.\.",
        r"Bootstrap etcd member has been removed",
        r"It is now safe to remove the bootstrap resources",
        r"Time elapsed: 1h1m40s",
    )


def test_an_api_that_never_comes() -> None:
    cluster = ToldCluster()
    cluster.client.answers = []
    told = Waiting()
    with pytest.raises(BootstrapFailed, match=r"Failed waiting for Kubernetes API\.") as failed:
        wait(cluster, told)
    assert failed.value.exit_code == 5
    assert failed.value.cause == "connection refused"
    assert API_LIMIT < told.now < API_LIMIT + 2


def test_a_bootstrap_that_does_not_complete_says_what_operators_say() -> None:
    cluster = ToldCluster()
    cluster.has_operator("etcd", Available="False", Progressing="False")
    cluster.has_operator("network", Available="True", Degraded="True")
    told = Waiting()
    with pytest.raises(BootstrapFailed, match=r"Failed to wait for bootstrapping to complete\."):
        wait(cluster, told)
    assert COMPLETE_LIMIT < told.now < COMPLETE_LIMIT + 2
    assert told.errors == [
        "Cluster operator etcd Available is False with R: m",
        "Cluster operator network Degraded is True with R: m",
    ]
