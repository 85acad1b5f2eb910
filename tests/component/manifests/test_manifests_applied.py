"""The cluster's first objects against a real API: all of them are accepted, whatever happens on the way."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootstrap_manifests import bootstrap_manifests
from real_api import RealApi

from eventually import PATIENCE, eventually
from falsework.assets.serialize import documents_in, to_yaml
from falsework.bootstrap.apply import Missing, apply_all, manifest_files
from falsework.files import write_file
from falsework.kube.client import APPLY, ApiError, Client, Object
from falsework.kube.resources import (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    INFRASTRUCTURES,
    MACHINE_CONFIG_POOLS,
    NAMESPACES,
    SCHEDULERS,
    Resource,
)
from falsework.manifests.objects import named
from falsework.manifests.release import definitions
from falsework.release.inventory import Release
from falsework.site.load import default_site, load_site

EXAMPLE = Path(__file__).parents[3] / "examples" / "alchemy"
CONFIGS = Resource("imageregistry.operator.openshift.io", "v1", "configs", False)


@pytest.fixture
def api(release: Release, programs: Path, tmp_path: Path) -> Iterator[RealApi]:
    with RealApi.in_folder(release, programs, tmp_path / "api") as api:
        yield api


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the default site."""
    return bootstrap_manifests(default_site(), tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def filled(
    release: Release, programs: Path, manifests: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealApi]:
    """An API with everything in it."""
    folder = tmp_path_factory.mktemp("filled")
    with RealApi.in_folder(release, programs, folder / "api") as api:
        said: list[str] = []
        assert apply_all(api.client(), manifests, said.append, folder / "all.done") == []
        assert (folder / "all.done").exists()
        assert len(said) < 2 * len(objects_in(manifests)) + 60
        assert missing_from(api.client(), manifests) == []
        yield api


def objects_in(folder: Path) -> list[Object]:
    return [body for path in manifest_files(folder) for body in documents_in(path.name, path.read_bytes())]


def missing_from(client: Client, folder: Path) -> list[str]:
    """Of all objects in the folder, those that are not there, or not with what was asked for."""
    return [
        f"{body['kind']}/{body['metadata']['name']}: {part}"
        for body in objects_in(folder)
        for part in ("spec", "status", "data", "subjects")
        if body.get(part) and not _holds(_live(client, body).get(part), body[part])
    ]


def _live(client: Client, body: Object) -> Object:
    resource, metadata = client.resource_of(body), body["metadata"]
    return client.get(resource, metadata["name"], metadata.get("namespace", "") if resource.namespaced else "")


def _holds(live: object, wanted: object) -> bool:
    """Nothing of what was asked for is lost: the API may add defaults, and must not prune."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            _holds(live.get(key), value) or value == {} for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(_holds, live, wanted))
    return live == wanted


def kubectl(release: Release, programs: Path, api: RealApi, *words: str) -> str:
    program = release.install("kubectl", programs)
    argv = [str(program), f"--kubeconfig={api.kubeconfig}", *words]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=PATIENCE, env={"HOME": str(api.folder)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_every_definition_is_established(filled: RealApi) -> None:
    found = {item["metadata"]["name"]: item for item in filled.client().list(CUSTOM_RESOURCE_DEFINITIONS).items}
    for definition in definitions():
        status = found[f"{definition.plural}.{definition.group}"]["status"]
        said = {entry["type"]: entry["status"] for entry in status["conditions"]}
        assert said == {"NamesAccepted": "True", "Established": "True"}, definition.plural
        assert status["acceptedNames"].get("shortNames", []) == list(definition.short)


def test_what_a_manifest_says_of_the_status_is_there(filled: RealApi) -> None:
    client = filled.client()
    status = client.get(INFRASTRUCTURES, "cluster")["status"]
    assert status["controlPlaneTopology"] == "HighlyAvailable"
    assert client.get(MACHINE_CONFIG_POOLS, "master")["status"]["configuration"]["name"].startswith("rendered-master-")


def test_the_cluster_version_has_the_overrides(filled: RealApi) -> None:
    overrides = filled.client().get(CLUSTER_VERSIONS, "version")["spec"]["overrides"]
    assert {"group": "config.openshift.io", "kind": "DNS", "name": "cluster", "namespace": "", "unmanaged": True} in (
        overrides
    )


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (("clusterversion",), "NAME VERSION AVAILABLE PROGRESSING SINCE STATUS"),
        (("clusterversions.config.openshift.io",), "NAME VERSION AVAILABLE PROGRESSING SINCE STATUS"),
        (("co",), "NAME VERSION AVAILABLE PROGRESSING DEGRADED SINCE"),
        (
            ("mcp",),
            "NAME CONFIG UPDATED UPDATING DEGRADED MACHINECOUNT READYMACHINECOUNT UPDATEDMACHINECOUNT"
            " DEGRADEDMACHINECOUNT AGE",
        ),
        (("mc",), "NAME GENERATEDBYCONTROLLER IGNITIONVERSION AGE"),
        (("etcd",), "NAME AGE"),
        (("ingresses.config/cluster",), "NAME AGE"),
        (("infrastructure", "cluster"), "NAME AGE"),
    ],
)
def test_kubectl_shows_openshifts_columns(
    filled: RealApi, release: Release, programs: Path, words: tuple[str, ...], columns: str
) -> None:
    client = filled.client()
    client.patch(CLUSTER_OPERATORS, "etcd", {**_named("ClusterOperator", "etcd"), "spec": {}}, kind=APPLY)
    header, *rows = kubectl(release, programs, filled, "get", *words).splitlines()
    assert " ".join(header.split()) == columns
    assert rows


def test_the_commands_of_the_guides(filled: RealApi, release: Release, programs: Path) -> None:
    def ask(*words: str) -> str:
        return kubectl(release, programs, filled, *words)

    domain = default_site().apps_domain
    assert ask("get", "ingresses.config/cluster", "-o", "jsonpath={.spec.domain}") == domain
    assert "default" in ask("get", "ingresscontroller", "-n", "openshift-ingress-operator")
    patch = '{"spec":{"mastersSchedulable":true}}'
    ask("patch", "schedulers.config.openshift.io", "cluster", "--type=merge", "-p", patch)
    assert filled.client().get(SCHEDULERS, "cluster")["spec"]["mastersSchedulable"] is True
    config = ask("explain", "clusterversion.spec")
    assert "clusterID" in config


def _named(kind: str, name: str, api: str = "config.openshift.io/v1") -> Object:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}}


_REGISTRY = "imageregistry.operator.openshift.io/v1"
_MACHINES = "machineconfiguration.openshift.io/v1"
_OPERATOR = "operator.openshift.io/v1"
_LEVELS = {"logLevel": "Normal", "operatorLogLevel": "Normal"}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({**_named("ClusterVersion", "other"), "spec": {"clusterID": "not a uuid"}}, "spec.clusterID"),
        ({**_named("ClusterVersion", "other"), "spec": {}}, "spec.clusterID"),
        ({**_named("ClusterVersion", "other")}, "spec"),
        ({**_named("Scheduler", "other"), "spec": {"mastersSchedulable": "yes"}}, "spec.mastersSchedulable"),
        ({**_named("Ingress", "other"), "spec": {"domain": "No Domain!"}}, "spec.domain"),
        ({**_named("Network", "other"), "spec": {"serviceNetwork": ["everything"]}}, "spec.serviceNetwork"),
        ({**_named("Network", "other"), "spec": {"clusterNetwork": [{"hostPrefix": 23}]}}, "spec.clusterNetwork"),
        ({**_named("Etcd", "other", _OPERATOR), "spec": {"managementState": "Removed"}}, "spec.managementState"),
        ({**_named("KubeAPIServer", "other", _OPERATOR), "spec": {"logLevel": "Loud"}}, "spec.logLevel"),
        ({**_named("MachineConfig", "other", _MACHINES), "spec": {"kernelArguments": "quiet"}}, "kernelArguments"),
        (
            {**_named("MachineConfig", "other", _MACHINES), "spec": {"config": {"ignition": {"version": "next"}}}},
            "spec.config.ignition.version",
        ),
        ({**_named("MachineConfigPool", "other", _MACHINES), "spec": {"paused": 1}}, "spec.paused"),
        (
            {
                **_named("Config", "other", _REGISTRY),
                "spec": {
                    "managementState": "Managed",
                    "replicas": 1,
                    "storage": {"emptyDir": {}, "pvc": {"claim": ""}},
                },
            },
            "exactly one storage type",
        ),
        (
            {**_named("Config", "other", _REGISTRY), "spec": {"managementState": "Perhaps", "replicas": 1}},
            "managementSta",
        ),
    ],
)
def test_nonsense_is_refused(filled: RealApi, body: Object, what: str) -> None:
    client = filled.client()
    with pytest.raises(ApiError) as refused:
        client.create(client.resource_of(body), body)
    assert refused.value.status == 422
    assert what in str(refused.value.cause)


def test_the_registry_takes_what_the_guides_edit(filled: RealApi) -> None:
    spec = {"managementState": "Managed", "replicas": 1, "storage": {"pvc": {"claim": ""}}, "logLevel": "Normal"}
    client = filled.client()
    assert client.get(CONFIGS, "cluster")["spec"] == {"managementState": "Removed", "replicas": 1, **_LEVELS}
    edited = client.patch(CONFIGS, "cluster", {"spec": spec})
    assert edited["spec"]["storage"] == {"pvc": {"claim": ""}}


def test_a_second_run_finds_everything(filled: RealApi, manifests: Path) -> None:
    before = {item["metadata"]["uid"] for item in filled.client().list(NAMESPACES).items}
    said: list[str] = []
    assert apply_all(filled.client(), manifests, said.append) == []
    assert not [line for line in said if line.startswith(("Created", "Failed", "Updated"))]
    assert before == {item["metadata"]["uid"] for item in filled.client().list(NAMESPACES).items}


def test_what_is_missing_is_named_until_it_comes(api: RealApi, tmp_path: Path) -> None:
    """The example site without definitions, and with a broken file: both are named, neither is said five times a
    second; and once they are there, all of that site is accepted too."""
    manifests = bootstrap_manifests(load_site(EXAMPLE), tmp_path, with_release=False)
    broken = manifests / "broken.yaml"
    broken.write_text("kind: [")
    said: list[str] = []
    told: list[list[Missing]] = []
    stop = threading.Event()
    work = threading.Thread(
        target=lambda: apply_all(
            api.client(), manifests, said.append, stop=stop, on_missing=lambda missing: told.append(list(missing))
        )
    )
    work.start()
    try:
        eventually(lambda: bool(told))
        # Several rounds, in each of which the same could be said again.
        time.sleep(2)
        assert "broken.yaml" in {missing.file for missing in told[-1]}
        why = {missing.what: missing.why for missing in told[-1]}
        assert "no matches for kind Scheduler in config.openshift.io/v1" in why["Scheduler/cluster"]
        assert "not found" in why["Secret/pull-secret -n openshift-config"]
        assert max(said.count(line) for line in said) == 1

        assert apply_all(api.client(), release_files(tmp_path / "release"), lambda _: None) == []
        # At once: half of it, or nothing, is a whole manifest too.
        write_file(broken, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mended, namespace: default}\n")
        work.join(PATIENCE)
        assert not work.is_alive()
    finally:
        stop.set()
        work.join()
    assert told[-1] == []
    assert api.client().get(CONFIG_MAPS, "mended", "default")
    assert missing_from(api.client(), manifests) == []


def release_files(folder: Path) -> Path:
    folder.mkdir()
    manifests = bootstrap_manifests(load_site(EXAMPLE), folder)
    for path in manifests.iterdir():
        if not path.name.startswith("0000_"):
            path.unlink()
    return manifests


PROGRAM = """
import sys
from pathlib import Path
from falsework.bootstrap.apply import apply_all
from falsework.kube.client import Client
print("ready", flush=True)
apply_all(Client.from_kubeconfig(Path(sys.argv[1])), Path(sys.argv[2]), print)
"""


def test_killed_while_applying_and_the_api_restarted(api: RealApi, manifests: Path) -> None:
    for delay in (0.05, 0.2, 0.5):
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(api.kubeconfig), str(manifests)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            time.sleep(delay)
            child.kill()
    said: list[str] = []
    left: list[list[Missing]] = []
    work = threading.Thread(target=lambda: left.append(apply_all(api.client(), manifests, said.append)))
    api.kill("kube-apiserver")
    work.start()
    eventually(lambda: any("cannot be reached" in line for line in said))
    time.sleep(1)
    assert len([line for line in said if "cannot be reached" in line]) == 1
    api.start_apiserver()
    work.join(PATIENCE)
    assert left == [[]]
    assert missing_from(api.client(), manifests) == []


def test_a_definition_whose_api_server_ended_too_early_is_taken_up(
    api: RealApi, release: Release, programs: Path, tmp_path: Path
) -> None:
    """Names accepted, not yet in use: the next API server would look at it again after five minutes."""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    definition = next(one for one in definitions() if one.kind == "Scheduler")
    (manifests / "definition.yaml").write_bytes(to_yaml(definition.manifest()))
    assert apply_all(api.client(), manifests, print) == []
    key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{definition.plural}.{definition.group}"
    etcdctl = release.install("etcdctl", programs)
    deadline = time.monotonic() + PATIENCE
    while "Established" not in (stored := api.etcdctl(etcdctl, "get", "--print-value-only", key)):
        assert time.monotonic() < deadline, stored
    api.kill("kube-apiserver")
    body = json.loads(stored)
    body["status"]["conditions"] = [one for one in body["status"]["conditions"] if one["type"] == "NamesAccepted"]
    api.etcdctl(etcdctl, "put", key, given=json.dumps(body))
    api.start_apiserver()
    scheduler = named("config.openshift.io/v1", "Scheduler", "cluster", spec={"mastersSchedulable": False})
    (manifests / "object.yaml").write_bytes(to_yaml(scheduler))
    said: list[str] = []
    assert apply_all(api.client(), manifests, said.append) == []
    assert [line for line in said if "is accepted and not in use" in line]
