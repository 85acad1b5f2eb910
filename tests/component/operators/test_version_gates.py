"""What the version operator waits for before a manifest counts as done."""

from __future__ import annotations

import pytest
from real_api import RealApi

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, Resource
from falsework.manifests.objects import named
from falsework.operators.cluster_version.builders import NotYet, apply
from falsework.operators.cluster_version.payload import Manifest, Mode

POD = {"containers": [{"name": "one", "image": "registry.example/one:1"}]}
MOMENT = "2026-01-01T00:00:00Z"


def workload(kind: str, name: str, **spec: object) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": POD}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return Manifest(f"0000_50_{name}_06.yaml", named("apps/v1", kind, name, "default", spec=spec))


def say(api: RealApi, resource: Resource, name: str, **status: object) -> None:
    live = api.client().get(resource, name, "default")
    known: Object = {"observedGeneration": live["metadata"]["generation"]} if resource is not JOBS else {}
    api.client().replace(resource, {**live, "status": known | status}, "status")


@pytest.mark.parametrize(
    ("manifest", "resource", "some", "rest"),
    [
        (
            workload("Deployment", "gate-deployment", replicas=2),
            DEPLOYMENTS,
            {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
            {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2},
        ),
        (
            workload("DaemonSet", "gate-daemonset"),
            DAEMON_SETS,
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1},
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2},
        ),
    ],
)
def test_workloads_are_rolled_out_but_not_waited_for_when_they_are_new(
    real_api: RealApi, manifest: Manifest, resource: Resource, some: Object, rest: Object
) -> None:
    client = real_api.client()
    needed = {"currentNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 0} if resource is DAEMON_SETS else {}
    try:
        apply(client, manifest, Mode.INSTALL)
        with pytest.raises(NotYet, match="not been looked at"):
            apply(client, manifest, Mode.RECONCILE)
        say(real_api, resource, manifest.name, **needed, **some)
        for mode in Mode:
            with pytest.raises(NotYet, match=r"has 1 of 2"):
                apply(client, manifest, mode)
        say(real_api, resource, manifest.name, **needed, **rest)
        for mode in Mode:
            apply(client, manifest, mode)
    finally:
        client.delete(resource, manifest.name, "default")


def test_a_job_is_waited_for_and_its_failure_told(real_api: RealApi) -> None:
    client = real_api.client()
    spec = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
    for name in ("gate-job", "gate-failed"):
        manifest = Manifest("0000_50_job_06.yaml", named("batch/v1", "Job", name, "default", spec=spec))
        try:
            for mode in (Mode.INSTALL, Mode.UPDATE):
                with pytest.raises(NotYet, match="is not complete"):
                    apply(client, manifest, mode)
            if name == "gate-job":
                met = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
                say(real_api, JOBS, name, startTime=MOMENT, completionTime=MOMENT, succeeded=1, conditions=met)
                apply(client, manifest, Mode.INSTALL)
            else:
                failed = [{"type": kind, "status": "True"} for kind in ("FailureTarget", "Failed")]
                say(real_api, JOBS, name, startTime=MOMENT, failed=1, conditions=failed)
                with pytest.raises(FalseworkError, match=r"gate-failed.* failed"):
                    apply(client, manifest, Mode.INSTALL)
        finally:
            client.delete(JOBS, name, "default")
