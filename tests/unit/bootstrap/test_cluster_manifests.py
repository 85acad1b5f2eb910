"""The manifests the bootstrap machine makes for every cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bootstrap_samples import FailingDisk, Killed, sample_facts, small

from falsework.bootstrap import places
from falsework.bootstrap.apply import manifest_files
from falsework.bootstrap.bootkube import Bootkube
from falsework.bootstrap.disk import Disk
from falsework.bootstrap.records import Records
from falsework.bootstrap.rendering import Rendering
from falsework.bootstrap.stage_runner import StageRunner
from falsework.manifests.release import api_manifests, config_manifests
from ignited import ignited


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def render(disk: Disk, root: Path, said: list[str]) -> None:
    rendering = Rendering(disk, sample_facts())
    rendering.clean()
    stages = StageRunner(disk, Records(root / "bootkube.json"), said.append)
    Bootkube(sample_facts(), disk, stages).render_cluster(rendering)


def names(root: Path) -> set[str]:
    return {path.name for path in manifest_files(root / places.CLUSTER_MANIFESTS.relative_to("/"))}


def test_they_are_written_once_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    root, said = small(tmp_path), list[str]()
    theirs = root / "opt/openshift/manifests" / next(iter(api_manifests()))
    theirs.write_text("kind: Theirs")
    for step in (0, 10, 30):
        with pytest.raises(Killed):
            render(FailingDisk(root, step, half=True), root, said)
    render(Disk(root), root, said)
    assert names(root) == {*api_manifests(), *config_manifests(), "cluster-config.yaml"}
    assert theirs.read_text() == "kind: Theirs"
    assert set(said) == {"Rendering api manifests...", "Rendering cluster config manifests..."}
    said.clear()
    render(Disk(root), root, said)
    assert said == []


def test_the_machines_configs_become_objects(tmp_path: Path) -> None:
    root = ignited(tmp_path / "root", tmp_path / "assets")
    Rendering(Disk(root), sample_facts()).machine_config_server()
    kinds = [name.split(".", 1)[1] for name in sorted(names(root)) if name.endswith(("config.yaml", "pool.yaml"))]
    assert kinds.count("machineconfigpool.yaml") == 2
    # Of each pool what it serves, and the three parts of that which come with the release.
    assert kinds.count("machineconfig.yaml") == 8
    (rendered, _) = sorted((root / "opt/openshift/manifests").glob("rendered-*"))
    assert rendered.stat().st_mode & 0o777 == 0o600
