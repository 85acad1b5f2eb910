"""The release and assets stages: what they find, and what they would do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stage_samples import context_in, events_of

from falsework.errors import FalseworkError
from falsework.stages import assets, release, runner

sys.path.append(str(Path(__file__).parents[1] / "assets"))
from asset_samples import snapshot


def test_assets_are_made_once_and_then_found(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    folder = context.lab.site_folder
    assert assets.STAGE.plan
    assert assets.STAGE.plan(context)[0].endswith(f"new assets in {folder}")
    assert not folder.exists()
    runner.run(context, [assets.STAGE])
    before = snapshot(folder)
    assert "bootstrap.ign" in before
    runner.run(context, [assets.STAGE])
    assert snapshot(folder) == before
    assert [event["state"] for event in events_of(context) if event["kind"] == "stage"] == [
        *("started", "finished"),
        "skipped",
    ]
    (folder / "auth/kubeconfig").unlink()
    assert not assets.STAGE.is_done(context), "looked up, not remembered"
    assert assets.STAGE.plan(context)[0].startswith("make auth/kubeconfig again")


def test_a_release_that_is_not_here_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALSEWORK_CACHE", str(tmp_path / "cache"))
    context = context_in(tmp_path, dry=True)
    assert not release.STAGE.is_done(context)
    assert release.STAGE.plan
    (step,) = release.STAGE.plan(context)
    assert step.startswith(f"build or fetch into {tmp_path / 'cache'}: ")
    assert "kubelet" in step
    with pytest.raises(FalseworkError, match="not complete any more"):
        _ = context.release
    assert list(tmp_path.iterdir()) == []
