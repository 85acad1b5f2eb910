"""All assets of a site together: what changes when, and what never does."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml
from asset_samples import (
    START,
    at,
    changed_between,
    finished,
    later,
    refresh,
    sample_site,
    snapshot,
)

from falsework.assets import objects
from falsework.assets.catalogue import Step, assets_of, certificates_in, create, good_until
from falsework.assets.certificates import rows
from falsework.assets.graph import Report
from falsework.assets.identity import infra_id, new_password
from falsework.assets.ignition import files_in
from falsework.assets.pki import Validity
from falsework.errors import UsageError
from falsework.site.model import Distribution, Site

MERGED = {
    f"rendered/{role}{ending}"
    for role in ("master", "worker")
    for ending in (".ign", "-machine-config.yaml", "-pool.yaml")
}
ALL_RENDERED = MERGED | {f"rendered/{role}-sources.yaml" for role in ("master", "worker")}
ALL_COMPLETE = {f"complete/{name}.ign" for name in ("master-0", "master-1", "master-2", "worker-0", "worker-1")}
ALL_MACHINES = {path.replace("complete", "machines") for path in ALL_COMPLETE}
SSH_MANIFESTS = {f"openshift/99_openshift-machineconfig_99-{role}-ssh.yaml" for role in ("master", "worker")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return finished(tmp_path)


def bootstrap_files(folder: Path) -> dict[str, bytes]:
    return files_in(json.loads((folder / "bootstrap.ign").read_bytes()))


def test_every_asset_comes_after_what_it_needs() -> None:
    seen: set[str] = set()
    for asset in assets_of(sample_site()):
        assert set(asset.needs) <= seen, asset.name
        seen.add(asset.name)


def test_a_second_run_changes_nothing(folder: Path) -> None:
    before = snapshot(folder)
    assert refresh(folder) == Report()
    assert snapshot(folder) == before


def test_manifests_first_is_the_same_as_all_at_once(tmp_path: Path) -> None:
    create(sample_site(), tmp_path, Step.MANIFESTS, clock=at(START))
    assert not list(tmp_path.glob("*.ign"))
    before = snapshot(tmp_path)
    create(sample_site(), tmp_path, Step.IGNITION_CONFIGS, clock=at(START))
    assert changed_between(before, snapshot(tmp_path)).isdisjoint(before)
    after = snapshot(tmp_path)
    assert not (tmp_path / "complete").exists()
    assert refresh(tmp_path) == Report()
    assert snapshot(tmp_path) == after


LAYOUT = """
auth/kubeadmin-password
auth/kubeconfig
bootstrap.ign
manifests/cluster-config.yaml
manifests/cluster-dns-02-config.yml
manifests/cluster-infrastructure-02-config.yml
manifests/cluster-ingress-02-config.yml
manifests/cluster-network-02-config.yml
manifests/cluster-proxy-01-config.yaml
manifests/cluster-scheduler-02-config.yml
manifests/cvo-overrides.yaml
manifests/kube-cloud-config.yaml
manifests/kube-system-configmap-root-ca.yaml
manifests/machine-config-server-ca-configmap.yaml
manifests/machine-config-server-ca-secret.yaml
manifests/machine-config-server-tls-secret.yaml
manifests/openshift-config-secret-pull-secret.yaml
master.ign
metadata.json
openshift/99_feature-gate.yaml
openshift/99_kubeadmin-password-secret.yaml
openshift/99_openshift-cluster-api_master-user-data-secret.yaml
openshift/99_openshift-cluster-api_worker-user-data-secret.yaml
openshift/99_openshift-machineconfig_99-master-ssh.yaml
openshift/99_openshift-machineconfig_99-worker-ssh.yaml
openshift/openshift-install-manifests.yaml
worker.ign
"""


def test_the_layout_is_that_of_openshift_install(folder: Path) -> None:
    assert set(LAYOUT.split()) <= set(snapshot(folder))


def change(site: Site, field: str) -> Site:
    networking = site.networking
    *others, last = site.machines
    match field:
        case "ssh_keys":
            return dataclasses.replace(site, ssh_keys=("ssh-ed25519 BBBB other",))
        case "pull_secret":
            return dataclasses.replace(site, pull_secret='{"auths":{"other":{"auth":"eA=="}}}')
        case "service_networks":
            networking = dataclasses.replace(networking, service_networks=(IPv4Network("172.31.0.0/16"),))
            return dataclasses.replace(site, networking=networking)
        case "a worker's address":
            moved = dataclasses.replace(last, address=IPv4Address("192.168.126.250"))
            return dataclasses.replace(site, machines=(*others, moved))
        case "a worker's cpus":
            return dataclasses.replace(site, machines=(*others, dataclasses.replace(last, cpus=64)))
        case "no second worker":
            return dataclasses.replace(site, machines=tuple(others))
        case "compute_replicas":
            return dataclasses.replace(site, compute_replicas=0)
    raise AssertionError(field)


@pytest.mark.parametrize(
    ("field", "dependents"),
    [
        ("ssh_keys", {"manifests/cluster-config.yaml", "bootstrap.ign"} | SSH_MANIFESTS | MERGED | ALL_COMPLETE),
        (
            "pull_secret",
            {"manifests/openshift-config-secret-pull-secret.yaml", "bootstrap.ign"} | ALL_RENDERED | ALL_COMPLETE,
        ),
        (
            "service_networks",
            {
                "manifests/cluster-config.yaml",
                "manifests/cluster-network-02-config.yml",
                "tls/kube-apiserver-service-network-server.crt",
                "tls/kube-apiserver-service-network-server.key",
                "bootstrap.ign",
            }
            | ALL_RENDERED
            | ALL_COMPLETE,
        ),
        ("a worker's address", {"machines/worker-1.ign", "complete/worker-1.ign", "bootstrap.ign"}),
        ("a worker's cpus", set()),
        (
            "no second worker",
            {
                "machines/worker-1.ign",
                "complete/worker-1.ign",
                "tls/join/worker-1.crt",
                "tls/join/worker-1.key",
                "bootstrap.ign",
            },
        ),
        (
            "compute_replicas",
            {
                "manifests/cluster-config.yaml",
                "manifests/cluster-scheduler-02-config.yml",
                "bootstrap.ign",
            },
        ),
    ],
)
def test_one_changed_field_changes_only_what_depends_on_it(folder: Path, field: str, dependents: set[str]) -> None:
    before = snapshot(folder)
    report = refresh(folder, change(sample_site(), field))
    assert changed_between(before, snapshot(folder)) == dependents
    assert report.warnings == report.edited == ()


@pytest.mark.parametrize(
    ("span", "classes"),
    [
        (timedelta(hours=15), set()),
        (timedelta(hours=17), {Validity.DAY}),
        (timedelta(days=250), {Validity.DAY, Validity.YEAR}),
        (timedelta(days=800), {Validity.DAY, Validity.YEAR, Validity.THREE_YEARS}),
        (timedelta(days=2500), set(Validity)),
    ],
)
def test_what_expires_is_issued_again_with_all_that_embeds_it(
    folder: Path, span: timedelta, classes: set[Validity]
) -> None:
    before = snapshot(folder)
    report = refresh(folder, clock=at(START + span))
    changed = changed_between(before, snapshot(folder))
    expected = {row.name for row in rows(sample_site()) if row.validity in classes}
    assert {row.name for row in rows(sample_site()) if row.certificate_path in changed} == expected
    assert report.warnings == ()
    embedding = {"bootstrap.ign"} | ALL_COMPLETE if classes else set()
    assert embedding <= changed
    assert (changed >= ALL_MACHINES) is (Validity.TEN_YEARS in classes)
    assert ("auth/kubeconfig" in changed) is (Validity.TEN_YEARS in classes)
    assert ("rendered/worker.ign" in changed) is (Validity.YEAR in classes)
    assert {"auth/kubeadmin-password", "metadata.json", "tls/service-account.key"}.isdisjoint(changed)
    for path in (*folder.glob("*.ign"), *folder.glob("machines/*.ign"), *folder.glob("complete/*.ign")):
        ends = good_until(folder, str(path.relative_to(folder)))
        assert ends is not None
        assert ends > START + span + timedelta(hours=7), path
    assert all(entry.problem is None for entry in certificates_in(sample_site(), folder))


def test_it_is_known_until_when_a_file_may_be_served(folder: Path) -> None:
    assert good_until(folder, "machines/worker-0.ign") == START + timedelta(days=3650)
    assert good_until(folder, "complete/worker-0.ign") == START + timedelta(days=1)
    assert good_until(folder, "bootstrap.ign") == START + timedelta(days=1)
    assert good_until(folder, "worker.ign") == START + timedelta(days=3650)
    assert good_until(folder, "auth/kubeadmin-password") is None
    with pytest.raises(FileNotFoundError):
        good_until(folder, "nothing.ign")


def test_a_config_changed_by_hand_is_known_to_be_old(folder: Path) -> None:
    path = folder / "complete/worker-0.ign"
    path.write_bytes(path.read_bytes() + b"\n")
    report = refresh(folder, clock=later(hours=20))
    assert report.warnings == ("complete/worker-0.ign: changed by hand and kept; what would be in it has changed",)
    assert good_until(folder, "complete/worker-0.ign") == START + timedelta(days=1)
    assert good_until(folder, "complete/worker-1.ign") == START + timedelta(hours=44)


def test_what_a_wrong_clock_dated_into_the_future_is_issued_again(folder: Path) -> None:
    report = refresh(folder, clock=later(days=-1))
    assert report.made["tls/root-ca"].startswith("not valid before 2030-01-01")
    assert all(entry.problem is None for entry in certificates_in(sample_site(), folder))


def test_the_notes_sed_on_the_scheduler_is_honoured(tmp_path: Path) -> None:
    site = dataclasses.replace(sample_site(), compute_replicas=0)
    create(site, tmp_path, Step.MANIFESTS, clock=at(START))
    path = tmp_path / "manifests/cluster-scheduler-02-config.yml"
    assert path.read_text().count("true") == 1
    assert "mastersSchedulable: true" in path.read_text()
    path.write_text(path.read_text().replace("true", "false"))
    report = create(site, tmp_path, Step.IGNITION_CONFIGS, clock=at(START))
    assert report.edited == ("manifests/cluster-scheduler-02-config.yml",)
    assert (
        b"mastersSchedulable: false" in bootstrap_files(tmp_path)["/opt/openshift/" + str(path.relative_to(tmp_path))]
    )
    assert refresh(tmp_path, site).written == ()
    assert "mastersSchedulable: false" in path.read_text()


def test_added_and_deleted_manifests_flow_into_the_bootstrap(folder: Path) -> None:
    (folder / "openshift/99_openshift-machineconfig_99-worker-ssh.yaml").unlink()
    mine = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
    (folder / "manifests/mine.yaml").write_text(yaml.safe_dump(mine))
    refresh(folder)
    files = bootstrap_files(folder)
    assert "/opt/openshift/manifests/mine.yaml" in files
    assert "/opt/openshift/openshift/99_openshift-machineconfig_99-worker-ssh.yaml" not in files
    overrides = yaml.safe_load(files["/opt/openshift/manifests/cvo-overrides.yaml"])["spec"]["overrides"]
    assert {"group": "", "kind": "Namespace", "name": "mine", "namespace": "", "unmanaged": True} in overrides
    assert "passwd" not in json.loads((folder / "rendered/worker.ign").read_bytes())
    assert "passwd" in json.loads((folder / "rendered/master.ign").read_bytes())


def test_a_machine_config_of_ones_own_reaches_the_machines(folder: Path) -> None:
    (folder / "openshift/mine.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfig",
                "metadata": {"name": "50-mine", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
                "spec": {
                    "config": {
                        "ignition": {"version": "3.2.0"},
                        "storage": {"files": [{"path": "/etc/mine", "contents": {"source": "data:,mine"}}]},
                    }
                },
            }
        )
    )
    before = snapshot(folder)
    refresh(folder)
    assert files_in(json.loads((folder / "complete/worker-0.ign").read_bytes()))["/etc/mine"] == b"mine"
    changed = changed_between(before, snapshot(folder))
    assert not [path for path in changed if "master" in path]


def test_the_same_object_twice_is_an_error_that_names_both_files(folder: Path) -> None:
    before = snapshot(folder)
    (folder / "manifests/mine.yaml").write_bytes((folder / "manifests/cluster-dns-02-config.yml").read_bytes())
    with pytest.raises(UsageError, match=r"mine\.yaml has the same DNS cluster as manifests/cluster-dns-02"):
        refresh(folder)
    (folder / "manifests/mine.yaml").unlink()
    assert snapshot(folder) == before


def test_a_persons_cvo_overrides_come_back_after_the_bootstrap(folder: Path) -> None:
    path = folder / "manifests/cvo-overrides.yaml"
    version = yaml.safe_load(path.read_text())
    own = [{"group": "apps", "kind": "Deployment", "name": "x", "namespace": "y", "unmanaged": True}]
    version["spec"]["overrides"] = own
    path.write_text(yaml.safe_dump(version))
    refresh(folder)
    files = bootstrap_files(folder)
    assert json.loads(files["/opt/openshift/original_cvo_overrides.patch"]) == {"spec": {"overrides": own}}
    listed = yaml.safe_load(files["/opt/openshift/manifests/cvo-overrides.yaml"])["spec"]["overrides"]
    assert listed[0] == own[0]
    assert len(listed) > 10


def test_a_password_of_ones_own_is_used(folder: Path) -> None:
    before = snapshot(folder)
    (folder / "auth/kubeadmin-password").write_text("correct horse battery staple")
    refresh(folder)
    changed = changed_between(before, snapshot(folder))
    assert changed == {"auth/kubeadmin-password", "openshift/99_kubeadmin-password-secret.yaml", "bootstrap.ign"}


def test_a_signer_of_ones_own_signs_from_then_on(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = finished(tmp_path_factory.mktemp("other"))
    for ending in ("crt", "key"):
        (elsewhere / f"tls/etcd-signer.{ending}").unlink()
    refresh(elsewhere)
    for ending in ("crt", "key"):
        (folder / f"tls/etcd-signer.{ending}").write_bytes((elsewhere / f"tls/etcd-signer.{ending}").read_bytes())
    report = refresh(folder)
    assert report.edited == ("tls/etcd-signer.crt", "tls/etcd-signer.key")
    assert "tls/etcd-client" in report.made
    assert all(entry.problem is None for entry in certificates_in(sample_site(), folder))


def test_an_edited_config_is_kept_and_its_age_is_told(folder: Path) -> None:
    path = folder / "master.ign"
    path.write_text(path.read_text() + "\n")
    assert refresh(folder).warnings == ()
    report = refresh(folder, clock=later(days=3000))
    assert "master.ign: changed by hand and kept; what would be in it has changed" in report.warnings
    assert path.read_text().endswith("\n")


def test_only_the_machine_config_server_and_its_complete_config_have_a_machines_credential(folder: Path) -> None:
    """What a machine boots with travels by plain HTTP."""
    key = (folder / "tls/join/worker-0.key").read_bytes()
    found = {
        f"{path.relative_to(folder)}:{name}"
        for path in folder.rglob("*.ign")
        for name, content in files_in(json.loads(path.read_bytes())).items()
        if base64.b64encode(key) in content
    }
    assert found == {
        "bootstrap.ign:/etc/mcs/bootstrap/join/worker-0.lab.falsework.test.kubeconfig",
        "complete/worker-0.ign:/etc/kubernetes/kubeconfig",
    }


def test_what_the_machine_config_server_serves_has_no_credential(folder: Path) -> None:
    for role in ("master", "worker"):
        files = files_in(json.loads((folder / f"rendered/{role}.ign").read_bytes()))
        assert "/etc/kubernetes/kubeconfig" not in files
        assert not [path for path, content in files.items() if b"PRIVATE KEY" in content]


def test_keys_that_only_sign_here_are_in_no_config(folder: Path) -> None:
    for name in ("admin-kubeconfig-signer", "kubelet-bootstrap-kubeconfig-signer"):
        key = (folder / f"tls/{name}.key").read_bytes()
        inside = b"".join(
            content for path in folder.rglob("*.ign") for content in files_in(json.loads(path.read_bytes())).values()
        )
        assert key not in inside
        assert base64.b64encode(key) not in inside


def test_files_with_secrets_are_private_on_the_bootstrap_too(folder: Path) -> None:
    config = json.loads((folder / "bootstrap.ign").read_bytes())
    contents = files_in(config)
    for entry in config["storage"]["files"]:
        content = contents[entry["path"]]
        if b"PRIVATE KEY" in content or b"\nkind: Secret" in content or entry["path"].startswith("/opt/openshift/tls/"):
            assert entry["mode"] == 0o600, entry["path"]


def test_complete_configs_are_kept_up_to_date_without_asking(folder: Path) -> None:
    assert set(refresh(folder, change(sample_site(), "ssh_keys")).written) >= ALL_COMPLETE


@pytest.mark.parametrize(
    ("masters", "workers", "control_plane", "infrastructure"),
    [
        (1, 0, "SingleReplica", "SingleReplica"),
        (2, 0, "DualReplica", "DualReplica"),
        (3, 0, "HighlyAvailable", "HighlyAvailable"),
        (3, 1, "HighlyAvailable", "SingleReplica"),
        (1, 2, "SingleReplica", "HighlyAvailable"),
    ],
)
def test_topology_follows_the_replicas(masters: int, workers: int, control_plane: str, infrastructure: str) -> None:
    status = objects.infrastructure("id", "api", "api-int", masters, workers)["status"]
    assert (status["controlPlaneTopology"], status["infrastructureTopology"]) == (control_plane, infrastructure)


def test_openshifts_assets_are_left_to_its_installer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="openshift"):
        create(dataclasses.replace(sample_site(), distribution=Distribution.OPENSHIFT), tmp_path)
    with pytest.raises(UsageError, match="openshift"):
        certificates_in(dataclasses.replace(sample_site(), distribution=Distribution.OPENSHIFT), tmp_path)
    assert not list(tmp_path.iterdir())


def test_passwords_and_ids_have_openshifts_shape() -> None:
    password = new_password()
    assert re.fullmatch(r"([a-km-zA-NP-Z2-9]{5}-){3}[a-km-zA-NP-Z2-9]{5}", password)
    assert re.fullmatch(r"lab-[a-z0-9]{5}", infra_id("lab"))
    assert re.fullmatch(r"a-b-c-[a-z0-9]{5}", infra_id("a..b_c"))
    assert len(infra_id("x" * 54)) == 27
