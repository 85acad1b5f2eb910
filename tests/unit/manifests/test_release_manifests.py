"""What every cluster has: the names are OpenShift's, the schemas are sound, the site's manifests fit them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from structural import faults, problems

from falsework.assets.catalogue import Step, create
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.assets.serialize import documents_in, to_yaml
from falsework.manifests.objects import Object
from falsework.manifests.release import api_manifests, config_manifests, definitions, release_manifests
from falsework.manifests.schema import Schema
from falsework.site.load import default_site, load_site
from falsework.site.model import Site

EXAMPLE = Path(__file__).parents[3] / "examples" / "alchemy"

CRDS = {
    "clusterversions.config.openshift.io": ("ClusterVersion", "Cluster", [], True),
    "clusteroperators.config.openshift.io": ("ClusterOperator", "Cluster", ["co"], True),
    "infrastructures.config.openshift.io": ("Infrastructure", "Cluster", [], True),
    "ingresses.config.openshift.io": ("Ingress", "Cluster", [], True),
    "dnses.config.openshift.io": ("DNS", "Cluster", [], True),
    "networks.config.openshift.io": ("Network", "Cluster", [], True),
    "schedulers.config.openshift.io": ("Scheduler", "Cluster", [], True),
    "proxies.config.openshift.io": ("Proxy", "Cluster", [], True),
    "featuregates.config.openshift.io": ("FeatureGate", "Cluster", [], True),
    "apiservers.config.openshift.io": ("APIServer", "Cluster", [], True),
    "authentications.config.openshift.io": ("Authentication", "Cluster", [], True),
    "oauths.config.openshift.io": ("OAuth", "Cluster", [], True),
    "consoles.config.openshift.io": ("Console", "Cluster", [], True),
    "images.config.openshift.io": ("Image", "Cluster", [], True),
    "etcds.operator.openshift.io": ("Etcd", "Cluster", [], True),
    "kubeapiservers.operator.openshift.io": ("KubeAPIServer", "Cluster", [], True),
    "kubecontrollermanagers.operator.openshift.io": ("KubeControllerManager", "Cluster", [], True),
    "kubeschedulers.operator.openshift.io": ("KubeScheduler", "Cluster", [], True),
    "ingresscontrollers.operator.openshift.io": ("IngressController", "Namespaced", [], True),
    "dnses.operator.openshift.io": ("DNS", "Cluster", [], True),
    "networks.operator.openshift.io": ("Network", "Cluster", [], True),
    "consoles.operator.openshift.io": ("Console", "Cluster", [], True),
    "storages.operator.openshift.io": ("Storage", "Cluster", [], True),
    "machineapprovers.operator.openshift.io": ("MachineApprover", "Cluster", [], True),
    "machineconfigurations.operator.openshift.io": ("MachineConfiguration", "Cluster", [], True),
    "routes.route.openshift.io": ("Route", "Namespaced", [], True),
    "configs.imageregistry.operator.openshift.io": ("Config", "Cluster", [], True),
    "machineconfigs.machineconfiguration.openshift.io": ("MachineConfig", "Cluster", ["mc"], False),
    "machineconfigpools.machineconfiguration.openshift.io": ("MachineConfigPool", "Cluster", ["mcp"], True),
    "controllerconfigs.machineconfiguration.openshift.io": ("ControllerConfig", "Cluster", [], True),
}


def schemas() -> dict[tuple[str, str], Schema]:
    return {
        (f"{one.group}/{one.version}", one.kind): one.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for one in definitions()
    }


def all_objects(files: dict[str, list[Object]]) -> list[Object]:
    return [body for bodies in files.values() for body in bodies]


def test_the_names_are_openshifts() -> None:
    found = {}
    for body in all_objects(api_manifests()):
        spec = body["spec"]
        (version,) = spec["versions"]
        assert version["name"] == "v1"
        names = spec["names"]
        has_status = "status" in version.get("subresources", {})
        found[body["metadata"]["name"]] = (names["kind"], spec["scope"], names.get("shortNames", []), has_status)
    assert found == CRDS


@pytest.mark.parametrize("key", schemas(), ids="/".join)
def test_schemas_are_structural(key: tuple[str, str]) -> None:
    assert list(faults(schemas()[key])) == []


@pytest.mark.parametrize("site", [default_site(), load_site(EXAMPLE)], ids=["default", "example"])
def test_every_manifest_of_a_site_fits(site: Site, tmp_path: Path) -> None:
    create(site, tmp_path, Step.ALL)
    known = schemas()
    seen = set()
    for folder in ("manifests", "openshift", "rendered"):
        for path in sorted((tmp_path / folder).glob("*.y*ml")):
            for body in documents_in(path.name, path.read_bytes()):
                key = (body["apiVersion"], body["kind"])
                assert ".openshift.io/" not in body["apiVersion"] or key in known, path
                if key in known:
                    seen.add(key[1])
                    assert list(problems(body, known[key])) == [], path
    assert {"ClusterVersion", "Infrastructure", "MachineConfig", "MachineConfigPool", "FeatureGate"} <= seen


def test_the_releases_own_objects_fit() -> None:
    known = schemas()
    for body in all_objects(release_manifests("1.2.3", DEFAULT_PAYLOAD.images)):
        key = (body["apiVersion"], body["kind"])
        if key in known:
            assert list(problems(body, known[key])) == []


def test_every_namespace_that_is_used_is_made(tmp_path: Path) -> None:
    made = {body["metadata"]["name"] for body in all_objects(config_manifests()) if body["kind"] == "Namespace"}
    create(default_site(), tmp_path, Step.MANIFESTS)
    used = {
        body["metadata"]["namespace"]
        for path in tmp_path.glob("[mo]*/*.y*ml")
        for body in documents_in(path.name, path.read_bytes())
        if "namespace" in body["metadata"]
    }
    assert "openshift-config" in used
    assert used <= made | {"kube-system", "default"}


def test_files_are_named_by_run_level_and_component() -> None:
    files = release_manifests("1.2.3", DEFAULT_PAYLOAD.images)
    assert list(files) == sorted(files)
    assert {
        re.sub(r".*_([0-9]{2}_[^_]+)$", r"\1", file)
        for file in files.keys() - api_manifests().keys() - config_manifests().keys()
    } <= {
        "03_rbac.yaml",
        "06_deployment.yaml",
        "05_ingressclass.yaml",
        "06_daemonset.yaml",
        "07_clusteroperator.yaml",
    }
    assert all(
        re.fullmatch(r"0000_[0-9]{2}_[a-z-]+_[0-9]{2}_[a-z.-]+\.yaml", file.replace("02_operator.cr", "02_cr"))
        for file in files
    )
    # An object comes after its definition and its namespace wherever they are in one component.
    for file, bodies in files.items():
        assert documents_in(file, to_yaml(*bodies)) == tuple(bodies)


def test_nobody_gets_rights_by_surprise() -> None:
    bindings = [body for body in all_objects(config_manifests()) if "RoleBinding" in body["kind"]]
    assert {body["roleRef"]["name"]: [one["name"] for one in body["subjects"]] for body in bindings} == {
        "cluster-admin": ["cluster-version-operator"],
        "system:kubelet-api-admin": ["system:kube-apiserver"],
    }
    admin = next(body for body in bindings if body["roleRef"]["name"] == "cluster-admin")
    assert admin["subjects"][0]["namespace"] == "openshift-cluster-version"
