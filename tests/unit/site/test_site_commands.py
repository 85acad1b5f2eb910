"""falsework init and falsework validate, as a person meets them."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path

import pytest
from site_files import INSTALL, PULL_SECRET, SITE, SSH_KEY

from falsework.cli import main
from falsework.cli.site_folder import default_folder
from falsework.site.load import load_site
from falsework.site.model import Distribution, Provider

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _answer(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{answer}\n" for answer in answers)))


def test_validate_says_all_that_is_wrong_and_ends_with_2(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "install-config.yaml").write_text(INSTALL.replace("name: demo", "name: De"))
    (tmp_path / "site.yaml").write_text(SITE.replace("nat: true", "nat: x"))
    assert main(["validate", "--dir", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "falsework: the site's files have 2 problems; nothing was touched",
        f"  {tmp_path}/install-config.yaml:4:9: metadata.name 'De' is not a DNS name; use labels of at most 63 "
        "lower-case letters, digits and '-', with dots between them",
        f"  {tmp_path}/site.yaml:8:8: network.nat is 'x'; write true or false",
        "  next:  mend these lines and run the same command again",
    ]


def test_validate_as_json(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "site.yaml").write_text("distribution: okd\n")
    assert main(["validate", "--dir", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "problems": [
            {
                "severity": "error",
                "file": f"{tmp_path}/site.yaml",
                "line": 1,
                "column": 15,
                "what": "distribution is 'okd'",
                "right": "write kubernetes or openshift",
            }
        ]
    }


def test_validate_prints_warnings_and_ends_with_0(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "install-config.yaml").write_text(INSTALL.replace(SSH_KEY, "PASTE"))
    assert main(["validate", "--dir", str(tmp_path)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path}/install-config.yaml:29:9: warning: sshKey is a placeholder")
    assert last == "demo.example.com: kubernetes on 3 masters and 2 workers (nspawn), network 10.1.0.0/24: good"
    assert main(["validate", "--dir", str(tmp_path), "--json"]) == 0
    assert [problem["severity"] for problem in json.loads(capsys.readouterr().out)["problems"]] == ["warning"]


def test_init_in_a_script_writes_the_default_site(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new"
    assert main(["init", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {folder}/install-config.yaml and {folder}/site.yaml"
    site = load_site(folder)
    assert (site.domain, len(site.masters), len(site.workers)) == ("lab.falsework.test", 3, 2)
    assert stat.S_IMODE((folder / "install-config.yaml").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["install-config.yaml", "site.yaml"]


def test_init_takes_everything_from_flags(tmp_path: Path) -> None:
    key, secret = tmp_path / "key.pub", tmp_path / "secret"
    key.write_text(SSH_KEY + "\n")
    secret.write_text(json.dumps(json.loads(PULL_SECRET), indent=2))
    words = (
        "--name prod --base-domain example.com. --distribution openshift --network 10.5.0.0/22 --masters 5 --workers 0"
    )
    flags = ["--ssh-key-file", str(key), "--pull-secret-file", str(secret), "--upstream-dns", "192.0.2.53", "--no-nat"]
    assert main(["init", "--dir", str(tmp_path), *words.split(), *flags]) == 0
    site = load_site(tmp_path)
    assert (site.domain, site.distribution, len(site.masters)) == ("prod.example.com", Distribution.OPENSHIFT, 5)
    assert (site.bootstrap.provider, site.lab.nat, str(site.lab.cidr)) == (Provider.LIBVIRT, False, "10.5.0.0/22")
    assert site.ssh_keys == (SSH_KEY,)
    assert json.loads(site.pull_secret or "") == json.loads(PULL_SECRET)


def test_names_that_yaml_would_take_for_something_else_survive(tmp_path: Path) -> None:
    assert main(["init", "--dir", str(tmp_path), "--name", "007", "--base-domain", "null"]) == 0
    assert load_site(tmp_path).domain == "007.null"


def test_init_leaves_files_that_are_there_alone(tmp_path: Path, capsys: Captured) -> None:
    there = tmp_path / "site.yaml"
    there.write_text("mine")
    assert main(["init", "--dir", str(tmp_path)]) == 2
    assert "site.yaml is there already; nothing was written" in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert not (tmp_path / "install-config.yaml").exists()
    assert main(["init", "--dir", str(tmp_path), "--force"]) == 0
    assert "distribution: kubernetes" in there.read_text()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--name", "Lab"], "--name 'Lab' is not a DNS name"),
        (["--masters", "2"], "there are 2 masters"),
        (["--masters", "x"], "--masters 'x' is not usable"),
        (["--network", "10.0.0.1/24"], "the network itself is 10.0.0.0/24"),
        (["--provider", "vmware"], "use nspawn, libvirt or manual"),
        (["--workers", "1000"], "has room for 254 addresses"),
        (["--distribution", "openshift"], "--pull-secret-file"),
        (["--provider", "manual", "--mac", "master-0=52:54:00:00:00:01"], "missing: bootstrap, master-1"),
        (["--mac", "nobody=52:54:00:00:00:01"], "'nobody'"),
        (["--upstream-dns", "dns"], "--upstream-dns 'dns' is not an IP address"),
        (["--ssh-key-file", "/nowhere"], "/nowhere cannot be read"),
    ],
)
def test_init_refuses_flags_that_make_no_site(tmp_path: Path, flags: list[str], said: str, capsys: Captured) -> None:
    assert main(["init", "--dir", str(tmp_path), *flags]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_init_lists_real_machines_with_their_macs(tmp_path: Path) -> None:
    names = ["bootstrap", "master-0", "worker-0"]
    macs = [word for index, name in enumerate(names) for word in ("--mac", f"{name}=52:54:00:00:00:0{index}")]
    words = ["--provider", "manual", "--masters", "1", "--workers", "1", *macs]
    assert main(["init", "--dir", str(tmp_path), *words]) == 0
    site = load_site(tmp_path)
    assert [(machine.name, machine.mac) for machine in site.machines] == [
        (name, f"52:54:00:00:00:0{index}") for index, name in enumerate(names)
    ]
    assert site.helper.provider is Provider.NSPAWN


def test_init_asks_at_a_terminal_and_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _answer(monkeypatch, "Demo", "demo", "", "", "", "10.7.0.0/24", "many", "1", "0", "")
    assert main(["init", "--dir", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert "Name of the cluster [lab]: " in printed
    assert "this answer 'Demo' is not a DNS name" in printed
    site = load_site(tmp_path / "new")
    assert (site.domain, str(site.lab.cidr)) == ("demo.falsework.test", "10.7.0.0/24")
    assert (len(site.masters), len(site.workers)) == (1, 0)


def test_init_left_in_the_middle_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    _answer(monkeypatch, "demo", "")
    assert main(["init", "--dir", str(tmp_path)]) == 2
    assert "left unanswered; nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_init_with_yes_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _answer(monkeypatch, "demo")
    assert main(["init", "--dir", str(tmp_path), "--yes"]) == 0
    assert load_site(tmp_path).cluster_name == "lab"


def test_init_says_where_it_cannot_write(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", "--dir", str(tmp_path / "file" / "below")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["install-config.yaml", "site.yaml", ".falsework-state.json"])
def test_the_folder_one_is_in_is_the_site_if_it_has_a_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_folder() == Path("lab")
    (tmp_path / name).touch()
    assert default_folder() == Path()


def test_without_a_site_here_there_is_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["validate"]) == 0
    assert capsys.readouterr().out.startswith("lab.falsework.test: ")
    assert main(["validate", "--dir", "nowhere"]) == 2
    assert list(tmp_path.iterdir()) == []
