"""Workers that come and go: what is noted, what is refused, and what a kill leaves."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from stage_samples import context_in, lab_in

from falsework.cli import main
from falsework.errors import UsageError
from falsework.lab.marker import mark
from falsework.machines import retirement
from falsework.site.load import default_site, load_site
from falsework.site.model import Site
from falsework.site.problems import SiteError
from falsework.stages import node_removal, site_change


def site_in(folder: Path) -> Site:
    return load_site(folder / "site", routes=tuple)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    mark(lab_in(tmp_path))
    return tmp_path


def test_a_site_without_files_gets_one_that_says_the_same(folder: Path) -> None:
    site_change.add_workers(lab_in(folder), default_site(), ["worker-2"])
    grown = site_in(folder)
    assert grown.machines[:-1] == default_site().machines
    assert f"name: worker-2, role: worker, address: {grown.workers[2].address}" in text_of(folder)
    site_change.remove_machine(lab_in(folder), grown, "worker-1")
    assert site_in(folder).workers == (grown.workers[0], grown.workers[2])
    assert not (folder / "site/install-config.yaml").exists()


def text_of(folder: Path) -> str:
    return (folder / "site/site.yaml").read_text()


def test_a_site_that_would_break_a_rule_is_not_written(folder: Path) -> None:
    with pytest.raises(SiteError):
        site_change.add_workers(lab_in(folder), default_site(), ["api"])
    assert list((folder / "site").iterdir()) == []


def test_a_change_that_was_cut_off_is_finished(folder: Path) -> None:
    lab = lab_in(folder)
    site_change.add_workers(lab, default_site(), ["worker-2"])
    wanted = text_of(folder)
    (folder / "site/site.yaml").unlink()
    (lab.root / "site-change.json").write_text(json.dumps({"install": None, "site": wanted}))
    site_change.finish(lab)
    site_change.finish(lab)
    assert text_of(folder) == wanted


def test_a_person_keeps_their_file(folder: Path) -> None:
    path = folder / "site/site.yaml"
    path.write_text("network: {nat: false}   # mine\n")
    path.chmod(0o600)
    site_change.add_workers(lab_in(folder), site_in(folder), ["w"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("network: {nat: false}   # mine\nmachines:")


def test_only_what_the_site_has_no_more_is_leaving(tmp_path: Path) -> None:
    site = default_site()
    context = context_in(tmp_path, site=site)
    assert node_removal.leaving(context) == []
    node_removal.note(context.lab, "worker-1")
    assert node_removal.noted(context.lab) == ["worker-1"]
    assert node_removal.leaving(context) == []
    fewer = dataclasses.replace(site, machines=site.machines[:-1])
    assert node_removal.leaving(context_in(tmp_path, site=fewer)) == ["worker-1"]


@pytest.mark.parametrize(("index", "why"), [(0, "as soon as nobody needs it"), (1, "member of etcd")])
def test_masters_and_the_bootstrap_are_not_removed(tmp_path: Path, index: int, why: str) -> None:
    context = context_in(tmp_path)
    with pytest.raises(UsageError) as refused:
        node_removal.refuse(context, context.site.machines[index], force=True)
    assert why in str(refused.value.cause)


# The command


@pytest.fixture
def standing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab whose cluster stands on its own."""
    monkeypatch.setenv("FALSEWORK_STATE", str(folder / "state"))
    retirement.note(lab_in(folder))
    monkeypatch.setattr("falsework.cli.node._bring_about", lambda *_: pytest.fail("nothing is to be brought about"))
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add"], "say which workers"),
        (["add", "--count", "0"], "say which workers"),
        (["add", "w", "--count", "1"], "say which workers"),
        (["add", "master-0"], "not a worker"),
        (["add", "helper"], "not a worker"),
        (["add", "leaving"], "just being removed"),
        (["add", "not_a_name"], "site.yaml"),
        (["remove", "nobody"], "there is no worker nobody"),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    standing: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    node_removal.note(lab_in(standing), "leaving")
    assert main(["node", *words, "--dir", str(standing / "site")]) == 2
    assert said in capsys.readouterr().err
    assert list((standing / "site").iterdir()) == []


def test_there_must_be_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "add", "w", "--dir", str(folder / "elsewhere")]) == 2
    assert "falsework up" in capsys.readouterr().err
