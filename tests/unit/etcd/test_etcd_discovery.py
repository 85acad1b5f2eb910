"""What a member does before it starts, by OpenShift's table; and what the operator reads out of pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falsework.errors import FalseworkError
from falsework.etcd import wal
from falsework.etcd.members import Member
from falsework.etcd.settings import peer_url
from falsework.etcd.wal import Identity
from falsework.operators.etcd import pod
from falsework.operators.etcd.decision import DESTROYED, Action, Listing, decide
from falsework.operators.etcd.discovery import archive, main
from falsework.operators.etcd.masters import inventory_in, masters_in
from falsework.operators.etcd.member_config import Certificates, MemberConfig

MINE = peer_url("10.0.0.1")
OTHER = Member(2, "other", (peer_url("10.0.0.2"),))
UNNAMED = Member(3, "", (peer_url("10.0.0.3"),), is_learner=True)
CLUSTER = 77
THIS, ANOTHER = Identity(1, CLUSTER), Identity(1, 88)


def decided(mine: Member | None, data: Identity | None) -> Action:
    members = (OTHER, *((mine,) if mine else ()))
    return decide("node", MINE, Listing(members, CLUSTER), data, patient=False).action


@pytest.mark.parametrize("data", [None, THIS, ANOTHER])
def test_one_that_is_not_listed_waits(data: Identity | None) -> None:
    assert decided(None, data) is Action.WAIT


@pytest.mark.parametrize("data", [None, THIS, ANOTHER])
def test_one_that_was_added_joins_whatever_an_earlier_life_left(data: Identity | None) -> None:
    assert decided(Member(1, "", (MINE,), is_learner=True), data) is Action.JOIN


def test_one_that_has_started_before_starts_with_its_data_alone() -> None:
    started = Member(1, "node", (MINE,))
    assert decided(started, THIS) is Action.START
    for data in (None, ANOTHER):
        assert decided(started, data) is Action.GIVE_UP
        assert DESTROYED in decide("node", MINE, Listing((started,), CLUSTER), data, patient=False).reason


def test_when_nobody_answers_data_decides_but_not_at_once() -> None:
    assert decide("node", MINE, None, THIS, patient=True).action is Action.WAIT
    assert decide("node", MINE, None, THIS, patient=False).action is Action.START
    assert decide("node", MINE, None, None, patient=False).action is Action.WAIT


def test_all_members_are_named_those_without_a_name_too() -> None:
    mine = Member(1, "", (MINE,), is_learner=True)
    found = decide("node", MINE, Listing((mine, OTHER, UNNAMED), CLUSTER), None, patient=True)
    assert found.initial_cluster == f"node={MINE},other={OTHER.peer_urls[0]},3={UNNAMED.peer_urls[0]}"


def test_a_member_never_begins_a_cluster() -> None:
    certificates = Certificates("ca.crt", "/certs", "node")
    config = MemberConfig("node", "10.0.0.1", "/data", certificates, "Slower", 3, 1 << 30)
    found = json.loads(config.to_json("node=x"))
    assert found["initial-cluster-state"] == "existing"
    assert (found["heartbeat-interval"], found["election-timeout"]) == (500, 2500)
    assert found["peer-transport-security"]["cert-file"] == "/certs/etcd-peer-node.crt"
    assert found["client-transport-security"]["client-cert-auth"] is True


def test_an_earlier_life_is_kept(tmp_path: Path) -> None:
    assert archive(tmp_path) is None
    (tmp_path / "member/snap").mkdir(parents=True)
    archived = archive(tmp_path)
    assert archived is not None
    assert (archived / "snap").is_dir()
    assert not (tmp_path / "member").exists()


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, b"\x08\x00\x00\x00\x00\x00\x00\x00\x0b\x0b"])
def test_what_is_no_log_is_nobodys(tmp_path: Path, content: bytes) -> None:
    assert wal.identity(tmp_path) is None
    folder = tmp_path / "member/wal"
    folder.mkdir(parents=True)
    (folder / "0000000000000000-0000000000000000.wal").write_bytes(content)
    assert wal.identity(tmp_path) is None


# What the operator reads


def node(name: str, address: str, **metadata: Any) -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    return {"metadata": {"name": name, **metadata}, "status": {"addresses": addresses}}


def etcd_pod(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"etcd-{name}"},
        "status": {"initContainerStatuses": [{"name": pod.DISCOVERY, **status}]},
    }


def test_who_waits_and_whose_data_is_gone() -> None:
    words = {"terminated": {"exitCode": 1, "message": f"member 1 has started before, but its {DESTROYED}"}}
    found = masters_in(
        [
            node("a", "10.0.0.1"),
            node("b", "10.0.0.2"),
            node("c", "10.0.0.3"),
            node("d", "10.0.0.4"),
            node("e", "10.0.0.5", deletionTimestamp="2026-01-01T00:00:00Z"),
        ],
        [
            etcd_pod("a", state={"running": {"startedAt": "now"}}, lastState=words),
            etcd_pod("b", state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=words),
            etcd_pod("c", state={"terminated": {"exitCode": 0}}, lastState=words),
        ],
    )
    assert set(found.addresses) == {"a", "b", "c", "d"}
    assert found.waiting == {"a"}
    assert found.destroyed == {"b"}


def test_the_inventory_names_all_who_may_be_members() -> None:
    machines = [
        {"name": "b", "role": "bootstrap", "address": "10.0.0.9"},
        {"name": "m", "role": "master", "address": "10.0.0.1"},
        {"name": "w", "role": "worker", "address": "10.0.0.5"},
    ]
    found = inventory_in({"data": {"inventory.json": json.dumps(machines)}})
    assert (found.masters, found.bootstrap) == (("10.0.0.1",), "10.0.0.9")
    broken_ones: list[dict[str, Any] | None]
    broken_ones = [None, {"data": {}}, {"data": {"inventory.json": "{}x"}}, {"data": {"inventory.json": "[1]"}}]
    for broken in broken_ones:
        with pytest.raises(FalseworkError, match="machine-inventory"):
            inventory_in(broken)


def test_the_pod_is_the_same_on_every_node() -> None:
    found = pod.etcd_pod(pod.Facts("etcd:1", "falsework:1", ("10.0.0.1", "10.0.0.9"), "Slower", 3, 8 << 30))
    spec = found["spec"]
    assert [container["name"] for container in spec["containers"]] == ["etcd"]
    assert [container["name"] for container in spec["initContainers"]] == ["discovery"]
    assert found["metadata"]["labels"].items() >= {"app": "etcd", "k8s-app": "etcd", "etcd": "true"}.items()
    environment = {entry["name"]: entry for entry in spec["containers"][0]["env"]}
    assert environment["ETCDCTL_ENDPOINTS"]["value"] == "https://$(NODE_IP):2379"
    # A variable must come before those that have it in their values.
    assert [*environment].index("NODE_IP") < [*environment].index("ETCDCTL_ENDPOINTS")
    assert spec["containers"][0]["readinessProbe"]["periodSeconds"] == 1
    assert "--speed=Slower" in spec["initContainers"][0]["command"]
    assert "REVISION" in json.dumps(spec["volumes"])
    assert "10.0.0.1" not in json.dumps(spec["containers"])


def test_the_program_takes_what_the_pod_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = pod.etcd_pod(pod.Facts("etcd:1", "falsework:1", ("10.0.0.1", "10.0.0.9"), "Slower", 3, 8 << 30))
    words = found["spec"]["initContainers"][0]["command"][4:]
    told = [word.replace("$(NODE_NAME)", "master-0").replace("$(NODE_IP)", "10.0.0.1") for word in words]
    assert main(told) == 1
    assert "server-ca-bundle.crt cannot be read" in capsys.readouterr().err
