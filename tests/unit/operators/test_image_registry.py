"""The image registry: what is asked for, what is made of it, what nodes are told, and what is said."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from falsework.assets.pki import load_certificates
from falsework.errors import FalseworkError
from falsework.operators.image_registry import certificates, credentials, node_ca, node_registries, registry
from falsework.operators.image_registry.names import SERVICE, Place
from falsework.operators.image_registry.node_ca import write_registries
from falsework.operators.image_registry.node_registries import NodeRegistry
from falsework.operators.image_registry.report import conditions_of
from falsework.operators.image_registry.settings import Settings, UnfitError, settings_of
from falsework.operators.image_registry.storage import new_claim, strategy_for
from falsework.operators.runtime.conditions import Condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Place(("172.30.1.2",), "default-route-openshift-image-registry.apps.example")


def settings(**spec: Any) -> Settings:
    return settings_of({"spec": {"managementState": "Managed", "replicas": 1, **spec}})


IN_POD = settings(storage={"emptyDir": {}})
IN_VOLUME = settings(storage={"pvc": {"claim": ""}})


def claim(*modes: str) -> dict[str, Any]:
    return {"metadata": {"name": "image-registry-storage"}, "spec": {"accessModes": list(modes)}}


def test_storage_has_to_be_one_there_is() -> None:
    with pytest.raises(UnfitError, match="storage backend not configured") as nothing:
        settings()
    assert nothing.value.reason == "StorageNotConfigured"
    with pytest.raises(UnfitError, match="storage backend not configured"):
        settings(storage={"managementState": "Managed"})
    with pytest.raises(UnfitError, match="s3 is not one"):
        settings(storage={"s3": {"bucket": "images"}})
    # A merge patch adds to what is there. Which of them is meant is not for us to guess.
    with pytest.raises(UnfitError, match="not emptyDir and pvc"):
        settings(storage={"emptyDir": {}, "pvc": {"claim": ""}})
    assert (IN_POD.claim, IN_VOLUME.claim) == ("", "image-registry-storage")
    assert settings(storage={"pvc": {"claim": "mine"}}).claim == "mine"


def test_a_claim_is_made_only_if_nobody_names_one() -> None:
    assert new_claim(IN_VOLUME)["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert new_claim(replace(IN_VOLUME, replicas=2))["spec"]["accessModes"] == ["ReadWriteMany"]
    with pytest.raises(UnfitError, match="there is no claim openshift-image-registry/mine"):
        new_claim(replace(IN_VOLUME, claim="mine"))


def test_two_pods_never_write_a_volume_of_one_node() -> None:
    assert strategy_for(IN_POD, None) == "RollingUpdate"
    assert strategy_for(replace(IN_VOLUME, replicas=2), claim("ReadWriteOnce", "ReadWriteMany")) == "RollingUpdate"
    assert strategy_for(IN_VOLUME, claim("ReadWriteOnce")) == "Recreate"
    with pytest.raises(UnfitError, match="good for one replica"):
        strategy_for(replace(IN_VOLUME, replicas=2), claim("ReadWriteOnce"))
    with pytest.raises(UnfitError, match="two pods cannot have it"):
        strategy_for(replace(IN_VOLUME, strategy="RollingUpdate"), claim("ReadWriteOnce"))


def test_passwords_are_made_once_and_hashed_once() -> None:
    login = credentials.login({}, PLACE.hosts)
    assert credentials.login(login, PLACE.hosts) == login
    assert credentials.login({}, PLACE.hosts)["password"] != login["password"]
    assert set(json.loads(login[".dockerconfigjson"])["auths"]) == set(PLACE.hosts)
    private = credentials.private({}, login)
    assert private["htpasswd"].startswith(b"registry:$2b$04$")
    assert credentials.private(private, login) == private
    # Somebody's own password, and a file somebody broke.
    changed = credentials.login({**login, "password": b"tree\n"}, PLACE.hosts)
    assert changed["password"] == b"tree"
    assert credentials.private(private, changed)["htpasswd"] != private["htpasswd"]
    assert credentials.private(private, changed)["http-secret"] == private["http-secret"]
    for broken in (b"what:ever", b"registry:$2b$99$x", b"\xff:\xff"):
        assert credentials.private({"htpasswd": broken}, login)["htpasswd"].startswith(b"registry:$2b$")


def test_a_hash_the_registry_does_not_know_is_none_though_it_is_right() -> None:
    login = credentials.login({"password": b"pw"}, PLACE.hosts)
    # By the oldest way there is, of the same password.
    old = {"htpasswd": b"registry:gaxDyoamrjlO6"}
    assert credentials.private(old, login)["htpasswd"].startswith(b"registry:$2b$")


@pytest.mark.parametrize("password", [b"\xff\xfe", b"tree\0house", b"tree\nhouse"])
def test_a_password_that_nobody_can_type_is_said_and_not_written_over(password: bytes) -> None:
    with pytest.raises(FalseworkError, match="image-registry-login is no text") as refused:
        credentials.login({"password": password}, PLACE.hosts)
    assert "tree" not in str(refused.value)


def test_certificates_are_renewed_in_time_and_when_nodes_know_the_signer() -> None:
    signer = certificates.signer({}, NOW)
    assert certificates.signer(signer, NOW + timedelta(days=700)) == signer
    assert certificates.signer({**signer, "tls.key": b"broken"}, NOW) != signer
    bundle = signer["tls.crt"].decode()

    def serving(old: dict[str, bytes], days: int = 0, *, by: dict[str, bytes] = signer, known: bool = True) -> Any:
        return certificates.serving(old, by, bundle, PLACE.addresses, NOW + timedelta(days=days), known=known)

    first = serving({}, known=False)
    assert serving(first) == first
    assert serving(first, 200) == first
    assert serving(first, 300) != first
    assert serving(first, 300, known=False) == first
    assert serving(first, 366, known=False) != first
    other = certificates.signer({}, NOW)
    assert serving(first, by=other) == first
    assert certificates.serving(first, other, other["tls.crt"].decode(), PLACE.addresses, NOW, known=False) != first
    assert certificates.serving(first, signer, bundle, ("172.30.9.9",), NOW, known=False) != first
    assert len(load_certificates(first["tls.crt"])) == 1


def test_pods_are_others_when_what_they_read_is() -> None:
    def pod(chosen: Settings = IN_POD, content: bytes = b"a") -> Any:
        return registry.deployment(chosen, "image", "Recreate", [content])["spec"]["template"]

    assert pod() == pod()
    pods = (pod(), pod(content=b"b"), pod(replace(IN_POD, read_only=True)))
    assert len({str(one["metadata"]["annotations"]) for one in pods}) == 3
    volumes = {volume["name"]: volume for volume in pod(IN_VOLUME)["spec"]["volumes"]}
    assert volumes["registry-storage"]["persistentVolumeClaim"] == {"claimName": "image-registry-storage"}
    assert pod()["spec"]["securityContext"]["runAsNonRoot"] is True


def told(*hosts: str, word: str = "Basic eA==") -> list[NodeRegistry]:
    return [NodeRegistry(host, "https://172.30.1.2:5000", "PEM\n", word) for host in hosts]


def test_nodes_go_to_the_service_by_its_address() -> None:
    (first, second, by_route) = node_registries.registries(PLACE, "ours", "ingress", "Basic eA==")
    assert (first.host, first.url) == (f"{SERVICE}:5000", "https://172.30.1.2:5000")
    assert (second.host, second.authority) == (f"{SERVICE}.cluster.local:5000", "ours")
    assert (by_route.url, by_route.authority) == (f"https://{PLACE.route}", "ingress")
    assert node_registries.registries(Place(("fd00::1",), ""), "", "", "")[0].url == "https://[fd00::1]:5000"
    content = node_registries.files([first, second])
    assert node_registries.parsed(content[node_registries.FILE]) == [first, second]


def test_what_a_node_was_told_it_forgets_again(tmp_path: Path) -> None:
    others = tmp_path / "registry.example" / "hosts.toml"
    others.parent.mkdir()
    others.write_text("somebody else's")
    assert write_registries(tmp_path, told("a:5000", "b")) == ["a:5000 is known", "b is known"]
    hosts = tmp_path / "a:5000" / "hosts.toml"
    assert stat.S_IMODE(hosts.stat().st_mode) == 0o600
    assert 'ca = "/etc/containerd/certs.d/a:5000/ca.crt"' in hosts.read_text()
    assert write_registries(tmp_path, told("a:5000", "b")) == []
    # Another password; one registry less; and what a kill left.
    (tmp_path / "b" / ".hosts.toml.abcd_123").touch()
    assert write_registries(tmp_path, told("a:5000", word="Basic eQ==")) == ["a:5000 is known", "b is forgotten"]
    assert "eQ==" in hosts.read_text()
    assert write_registries(tmp_path, []) == ["a:5000 is forgotten"]
    assert [path.name for path in tmp_path.iterdir()] == ["registry.example"]
    assert others.read_text() == "somebody else's"
    with pytest.raises(FalseworkError, match="is there already"):
        write_registries(tmp_path, told("registry.example"))


def test_a_node_waits_for_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = node_registries.files(told("a:5000"))
    source, folder = tmp_path / "registries.json", tmp_path / "certs.d"
    source.write_bytes(content[node_registries.FILE])
    folder.mkdir()
    words = [f"--registries={source}", f"--folder={folder}"]
    assert node_ca.main([*words, "--digest=another"]) == 1
    assert not list(folder.iterdir())
    assert node_ca.main([*words, f"--digest={node_registries.digest_of(content)}"]) == 0
    assert "eA==" not in capsys.readouterr().err


def live(**status: int) -> dict[str, Any]:
    return {
        "metadata": {"generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, **status},
    }


READY = live(replicas=1, updatedReplicas=1, availableReplicas=1)
EVERYWHERE = live(desiredNumberScheduled=3, numberAvailable=3, updatedNumberScheduled=3)


def words(conditions: list[Condition]) -> dict[str, tuple[str, str]]:
    return {entry["type"]: (entry["status"], entry.get("reason", "")) for entry in conditions}


def test_conditions_are_openshifts() -> None:
    removed = words(conditions_of("Removed", None, None, None))
    assert removed == {
        "Available": ("True", "Removed"),
        "Progressing": ("False", "Removed"),
        "Degraded": ("False", "Removed"),
        "Removed": ("True", "Removed"),
    }
    assert words(conditions_of("Removed", READY, EVERYWHERE, None))["Progressing"] == ("True", "DeletingDeployment")
    assert words(conditions_of("Removed", None, EVERYWHERE, None))["Removed"] == ("False", "Removing")
    unfit = UnfitError("StorageNotConfigured", "storage backend not configured")
    said = conditions_of("Managed", None, None, unfit)
    assert {words(said)[kind] for kind in ("Available", "Progressing")} == {("False", "StorageNotConfigured")}
    assert words(said)["Degraded"] == ("True", "StorageNotConfigured")
    assert said[1]["message"] == "Unable to apply resources: storage backend not configured"
    ready = words(conditions_of("Managed", READY, EVERYWHERE, None))
    assert (ready["Available"], ready["Progressing"]) == (("True", "Ready"), ("False", "Ready"))
    assert ready["NodeCADaemonProgressing"] == ("False", "AsExpected")
    waiting = conditions_of("Managed", live(), None, None, "claim is Pending")
    assert waiting[1]["message"] == "The deployment has not completed: claim is Pending"
    assert words(waiting)["Available"] == ("False", "NoReplicasAvailable")
    assert words(conditions_of("Unmanaged", READY, None, None))["Progressing"] == ("False", "Unmanaged")
    trouble = words(conditions_of("Managed", READY, EVERYWHERE, FalseworkError("the API says no")))
    assert (trouble["Available"], trouble["Progressing"]) == (("True", "Ready"), ("True", "Error"))
