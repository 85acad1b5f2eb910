"""Machines join and leave a cluster that is in use."""

from __future__ import annotations

from pathlib import Path

from application import apply, deployment, image_of, namespace, pods_of, rolled_out, service
from eventually import eventually
from falsework.machines.provider import Power
from lab_under_test import LabUnderTest
from raised_cluster import DOMAIN
from web_poller import visiting

SPACE = "busy"
NEW = "worker-2"


def test_a_node_comes_and_goes_and_no_visitor_notices(lab: LabUnderTest, tmp_path: Path) -> None:
    host = f"web-{SPACE}.apps.{DOMAIN}"
    with namespace(lab, SPACE):
        apply(lab, *application(lab))
        rolled_out(lab, SPACE, "web")
        lab.at_the_workstation(f"curl -s --retry 20 --retry-delay 1 --retry-all-errors --fail http://{host}/")
        with visiting(lab, host, tmp_path / "visited.json") as visited:
            lab.run("node", "add", NEW, limit=300)
            assert f"{NEW}.{DOMAIN}" in nodes(lab)
            # Its pods go elsewhere: there is a third worker now.
            lab.run("node", "remove", "worker-1", limit=300)
            assert f"worker-1.{DOMAIN}" not in nodes(lab)
            rolled_out(lab, SPACE, "web")
            others = {f"worker-0.{DOMAIN}", f"{NEW}.{DOMAIN}"}
            eventually(lambda: set(pods_of(lab, SPACE, "web").values()) == others, lambda: pods_of(lab, SPACE, "web"))
        print(f"\nvisitor: {visited}")
        assert visited.failures == []
        assert visited.reads > 100
    assert lab.machines.state("worker-1").power is Power.ABSENT
    assert "worker-1" not in lab.run("balancer", "state")
    assert "worker-1" not in lab.inside("helper", "cat", "/etc/falsework/machines/names/site")
    # And back to where it was, for the tests after this one.
    lab.run("node", "add", "worker-1", limit=300)
    lab.run("node", "remove", NEW, limit=300)
    assert nodes(lab) == {f"{name}.{DOMAIN}" for name in ("master-0", "master-1", "master-2", "worker-0", "worker-1")}
    assert "done already" in lab.run("up", limit=300)


def test_a_master_is_not_removed(lab: LabUnderTest) -> None:
    assert "master-0" in lab.run("node", "remove", "master-0", code=2)


def nodes(lab: LabUnderTest) -> set[str]:
    """Those that are Ready; all that are there must be, within a while."""

    def ready() -> dict[str, bool]:
        return {
            node["metadata"]["name"]: any(
                entry["type"] == "Ready" and entry["status"] == "True" for entry in node["status"]["conditions"]
            )
            for node in lab.found("nodes")
        }

    eventually(lambda: all(ready().values()), ready)
    return set(ready())


def application(lab: LabUnderTest) -> list[dict[str, object]]:
    """Two web servers, of which one may be missing, and the way to them."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    route = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "web", "namespace": SPACE},
        "spec": {"to": {"kind": "Service", "name": "web"}},
    }
    return [deployment("web", SPACE, image_of(lab), replicas=2), service("web", SPACE), budget, route]
