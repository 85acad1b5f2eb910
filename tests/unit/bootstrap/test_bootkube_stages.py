"""Rendering and taking down, killed between any two steps."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from bootstrap_samples import FailingDisk, Killed, sample_facts, small

from falsework.bootstrap import places
from falsework.bootstrap.bootkube import Bootkube
from falsework.bootstrap.disk import Disk
from falsework.bootstrap.records import Records
from falsework.bootstrap.rendering import TEMPORARY, Rendering
from falsework.bootstrap.stage_runner import StageRunner
from falsework.errors import FalseworkError


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are killed here, not the host: what was written is there."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small(tmp_path / "root")


def runner(disk: Disk, root: Path, said: list[str] | None = None) -> StageRunner:
    return StageRunner(
        disk, Records(root / "var/log/openshift/bootkube.json"), (said if said is not None else []).append
    )


def whole(disk: Disk, root: Path, said: list[str] | None = None) -> None:
    """All that bootkube does to files, without the waits between."""
    rendering = Rendering(disk, sample_facts())
    rendering.clean()
    stages = runner(disk, root, said)
    Bootkube(sample_facts(), disk, stages).render(rendering)
    rendering.start_api()
    rendering.start_clients()


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "var/log" not in str(path)
    }


def assert_the_kubelet_may_look(root: Path) -> None:
    """Whatever it would read now is a whole pod."""
    folder = root / "etc/kubernetes/manifests"
    for path in folder.iterdir() if folder.exists() else ():
        if not path.name.startswith("."):
            assert yaml.safe_load(path.read_bytes())["kind"] == "Pod", path


def steps_of(act: Callable[[FailingDisk], None], root: Path) -> int:
    counter = FailingDisk(root, 1000)
    act(counter)
    return 1000 - counter.steps


@pytest.mark.parametrize("half", [False, True])
def test_killed_before_any_step_it_finishes_the_next_time(tmp_path: Path, half: bool) -> None:
    expected = small(tmp_path / "expected")
    steps = steps_of(lambda disk: whole(disk, expected), expected)
    assert steps > 20
    root = tmp_path / "root"
    for step in range(steps):
        small(root)
        with pytest.raises(Killed):
            whole(FailingDisk(root, step, half=half), root)
        assert_the_kubelet_may_look(root)
        whole(Disk(root), root)
        assert tree(root) == tree(expected), step
        shutil.rmtree(root)


def test_killed_at_every_step_in_turn_it_still_comes_to_an_end(root: Path) -> None:
    for _ in range(200):
        try:
            whole(FailingDisk(root, 1), root)
        except Killed:
            continue
        break
    else:
        pytest.fail("a run that gets one step further each time never ends")


def test_taking_down_leaves_etcd_and_the_config_server(root: Path) -> None:
    whole(Disk(root), root)
    rendering = Rendering(Disk(root), sample_facts())
    for step in range(20):
        try:
            Rendering(FailingDisk(root, step), sample_facts()).stop_temporary()
        except Killed:
            continue
        break
    assert {path.name for path in (root / "etc/kubernetes/manifests").iterdir()} == {
        "etcd-member-pod.yaml",
        "machineconfigoperator-bootstrap-pod.yaml",
    }
    assert not (root / "etc/kubernetes/bootstrap-secrets").exists()
    rendering.stop_machine_config_server()
    assert [path.name for path in (root / "etc/kubernetes/manifests").iterdir()] == ["etcd-member-pod.yaml"]


def test_pods_and_their_secrets_are_for_root_alone(root: Path) -> None:
    whole(Disk(root), root)
    for folder in (places.STATIC_PODS, places.SECRETS):
        for path in Disk(root).files(folder):
            assert Disk(root).place(path).stat().st_mode & 0o777 == 0o600, path
    assert set(TEMPORARY) < {path.name for path in Disk(root).files(places.STATIC_PODS)}


def test_both_sets_of_phrases_are_said_once(root: Path) -> None:
    said: list[str] = []
    whole(Disk(root), root, said)
    assert {"Rendering CEO Manifests...", "Rendering etcd manifests...", "Rendering kube-apiserver manifests..."} < set(
        said
    )
    again: list[str] = []
    whole(Disk(root), root, again)
    assert not again


def test_two_manifests_of_one_name_are_told(root: Path) -> None:
    (root / "opt/openshift/openshift/cluster-config.yaml").write_text("{}")
    with pytest.raises(FalseworkError, match="the same name"):
        Rendering(Disk(root), sample_facts()).move_manifests()


# The runner


def test_a_stage_that_failed_is_run_again(tmp_path: Path) -> None:
    stages, calls = runner(Disk(tmp_path), tmp_path), []

    def act() -> None:
        calls.append("called")
        if len(calls) == 1:
            raise FalseworkError("not yet")

    with pytest.raises(FalseworkError):
        stages.run("wait-for-etcd", act)
    assert not stages.done("wait-for-etcd")
    stages.run("wait-for-etcd", act)
    stages.run("wait-for-etcd", act)
    assert len(calls) == 2
    results = [entry.get("result") for entry in json.loads((tmp_path / "var/log/openshift/bootkube.json").read_bytes())]
    assert results == [None, "failure", None, "success"]


def test_an_attempt_that_fails_stops_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    stages = runner(Disk(tmp_path), tmp_path, said)

    def act() -> None:
        raise FalseworkError("api.example is not in the DNS")

    stages.attempt("resolve-api-url", act, marker="api-dns-resolved")
    assert said == ["api.example is not in the DNS"]
    assert not stages.done("api-dns-resolved")
    stages.attempt("resolve-api-url", lambda: None, marker="api-dns-resolved")
    assert (tmp_path / "opt/openshift/api-dns-resolved.done").exists()
