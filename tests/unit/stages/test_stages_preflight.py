"""Preflight: everything that is wrong with a host, with what to do about it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from stage_samples import context_in, host, lab_in

from falsework.host.facts import Host
from falsework.lab.folder import Lab
from falsework.lab.journal import Journal
from falsework.lab.marker import mark
from falsework.site.load import default_site
from falsework.site.model import Distribution, Provider
from falsework.stages import check_host, check_leftovers, check_resources, check_site, preflight
from falsework.stages.findings import Finding, HostNotFitError, Level, problem
from falsework.stages.preflight import CHECKS, Check

GIB = 1 << 30
LOOKING = {check.name: check.look for check in CHECKS if not check.tries}


def worst(found: list[Finding]) -> Finding:
    return max(found, key=lambda one: list(Level).index(one.level))


@pytest.fixture(autouse=True)
def _no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALSEWORK_CACHE", str(tmp_path / "cache"))


def test_a_good_host_has_nothing_wrong(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    found = preflight.examine(context, [check for check in CHECKS if not check.tries])
    assert {finding.level for finding in found} == {Level.OK}, found


@pytest.mark.parametrize(
    ("check", "facts", "level", "what", "fix"),
    [
        ("root", {"root": False}, Level.PROBLEM, "only root", "sudo"),
        ("capabilities", {"held": (1 << 41) - 1 - (1 << 21)}, Level.PROBLEM, "CAP_SYS_ADMIN missing", "privileged"),
        ("capabilities", {"held": (1 << 41) - 1 - (1 << 24)}, Level.NOTE, "CAP_SYS_RESOURCE", ""),
        ("memory", {"memory": 1500}, Level.PROBLEM, "7 machines use at least", "fewer machines"),
        ("memory", {"memory": 8000}, Level.WARNING, "may use 17408 MiB", "site.yaml"),
        ("processors", {"processors": 1}, Level.WARNING, "1 processor", "slowly"),
        ("disk", {"free": 10 * GIB}, Level.PROBLEM, "10.0 GiB are free", "FALSEWORK_STATE"),
        ("disk", {"devices": lambda path: hash(path)}, Level.PROBLEM, "different file systems", "FALSEWORK_STATE"),
        ("mount options", {"flags": os.ST_NOEXEC | os.ST_NODEV}, Level.PROBLEM, "noexec, nodev", "FALSEWORK_STATE"),
        (
            "inotify",
            {"numbers": {"fs.inotify.max_user_instances": 128}},
            Level.NOTE,
            "max_user_instances is 128: it is raised to 4096",
            "",
        ),
        ("limits", {"numbers": {"kernel.pid_max": 4096}}, Level.WARNING, "kernel.pid_max is 4096", "sysctl -w"),
        ("limits", {"files": 1024}, Level.PROBLEM, "only 1024 files", "ulimit"),
        ("limits", {"files": 8192}, Level.WARNING, "only 8192 files", "ulimit"),
        ("NFS client", {"mountable": ()}, Level.NOTE, "pods cannot have NFS volumes", ""),
        ("clock", {"time": 0.0}, Level.PROBLEM, "the clock says 1970-01-01", "set the clock"),
        ("clock", {"synchronised": False}, Level.NOTE, "synchronised", ""),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    tmp_path: Path, check: str, facts: dict[str, object], level: Level, what: str, fix: str
) -> None:
    found = worst(list(LOOKING[check](context_in(tmp_path, host=host(**facts)))))
    assert found.level is level
    assert what in found.what
    assert fix in found.fix
    if level in (Level.PROBLEM, Level.WARNING):
        assert found.fix


@pytest.mark.parametrize(
    ("known", "module", "can"),
    [
        ("nodev\tnfs\n", "", True),
        ("nodev\tnfsd\n\text4\n", "", False),
        ("\text4\n", "kernel/fs/nfs/nfs.ko.xz: kernel/fs/lockd/lockd.ko.xz", True),
        ("\text4\n", "kernel/fs/nfsd/nfsd.ko.xz:", False),
    ],
)
def test_what_the_kernel_can_mount(tmp_path: Path, known: str, module: str, can: bool) -> None:
    modules = tmp_path / "modules" / os.uname().release
    modules.mkdir(parents=True)
    (modules / "modules.dep").write_text(module)
    (tmp_path / "filesystems").write_text(known)
    host = Host()
    host.proc, host.modules = tmp_path, tmp_path / "modules"
    assert host.can_mount("nfs") is can


def test_no_limit_on_open_files_is_a_good_limit(tmp_path: Path) -> None:
    assert worst(list(check_host.limits(context_in(tmp_path, host=host(files=-1))))).level is Level.OK


def test_machines_that_are_there_have_their_memory_already(tmp_path: Path) -> None:
    context = context_in(tmp_path, host=host(memory=500))
    for name in ("helper", "bootstrap", "master-0", "master-1", "master-2", "worker-0"):
        context.journal.creating("machine", name)
    found = worst(list(check_resources.memory(context)))
    assert found.level is Level.WARNING
    assert "1 machines may use 2048 MiB" in found.what


def test_certificates_from_the_future_are_told(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/.falsework-state.json").write_text(
        '{"assets": {"a": {"inputs": {}, "files": {}, "begins": "2040-01-01T00:00:00+00:00"}}, "pending": {}}'
    )
    found = worst(list(check_host.clock(context_in(tmp_path))))
    assert found.level is Level.WARNING
    assert "1 certificates are not valid yet" in found.what


def test_what_cannot_be_made_yet_is_refused(tmp_path: Path) -> None:
    site = default_site()
    machines = (dataclasses.replace(site.machines[0], provider=Provider.LIBVIRT), *site.machines[1:])
    mixed = context_in(tmp_path, site=dataclasses.replace(site, machines=machines))
    found = worst(list(check_site.providers(mixed)))
    assert found.what == "bootstrap: machines of provider libvirt cannot be made yet"
    openshift = context_in(tmp_path, site=dataclasses.replace(site, distribution=Distribution.OPENSHIFT))
    assert worst(list(check_site.distribution(openshift))).level is Level.PROBLEM


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("no json", "cannot be read"),
        ('{"version": 0, "siteFolder": "/x"}', "made by an older Falsework"),
        ('{"version": 99, "siteFolder": "/x"}', "made by a newer Falsework"),
    ],
)
def test_a_lab_of_another_falsework_is_not_continued(tmp_path: Path, content: str, what: str) -> None:
    context = context_in(tmp_path)
    (context.lab.root / "lab.json").write_text(content)
    mark(context.lab)
    found = worst(list(check_leftovers.own_folder(context)))
    assert what in found.what
    assert f"falsework destroy --dir {context.lab.site_folder}" in found.fix


def test_the_rest_of_an_interrupted_destroy_is_not_continued(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (context.lab.root / "machines").mkdir()
    (context.lab.root / "lab.json").unlink()
    mark(context.lab)
    assert "interrupted `falsework destroy`" in worst(list(check_leftovers.own_folder(context))).what


def test_namespaces_the_journal_does_not_know_are_named(tmp_path: Path) -> None:
    lab = lab_in(tmp_path)
    names = (lab.netns("helper"), lab.netns("master-0"), "fw-ffffffff.helper")
    context = context_in(tmp_path, host=host(names=names))
    Journal(lab.journal).creating("netns", lab.netns("helper"))
    found = worst(list(check_leftovers.own_namespaces(context)))
    assert found.level is Level.PROBLEM
    assert found.what.endswith(f": {lab.netns('master-0')}")


def test_other_labs_are_told_about_and_those_without_a_site_most_of_all(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "here").mkdir()
    mark(Lab.of(tmp_path / "here", tmp_path / "state"))
    mark(Lab.of(tmp_path / "gone", tmp_path / "state"))
    (tmp_path / "state/fw-00000000").mkdir()
    texts = sorted(str(found) for found in check_leftovers.other_labs(context))
    assert len(texts) == 3
    assert texts[0].startswith("note: 1 more lab on this host")
    assert any(f"falsework destroy --dir {tmp_path / 'gone'}" in text for text in texts)
    assert any("fw-00000000 is a lab's folder without a readable lab.json" in text for text in texts)


def test_all_problems_come_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (
        Check("one", lambda _: [problem("no disk", "buy one")]),
        Check("two", lambda _: [problem("no memory", "buy some")]),
    )
    monkeypatch.setattr(preflight, "CHECKS", checks)
    with pytest.raises(HostNotFitError) as caught:
        preflight.STAGE.run(context_in(tmp_path))
    assert str(caught.value).splitlines() == [
        "this host has 2 problems that must be solved first",
        "  no disk",
        "    → buy one",
        "  no memory",
        "    → buy some",
        "  next:  do this, then run the same command again",
    ]


def test_a_dry_run_looks_but_does_not_try(tmp_path: Path) -> None:
    assert preflight.STAGE.plan
    steps = preflight.STAGE.plan(context_in(tmp_path, dry=True, host=host(processors=1)))
    assert steps[0].startswith("warning: there is 1 processor")
    assert "try an empty control group in every hierarchy" in steps
    assert list(tmp_path.iterdir()) == []
