import os
import shutil
import threading
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.files import only_one
from falsework.host import packages
from falsework.host.packages import Program


@pytest.fixture(autouse=True)
def one_missing_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(packages, "PROGRAMS", {"absent": Program("absent", apt="deb-absent", dnf="rpm-absent")})


def on_distribution(monkeypatch: pytest.MonkeyPatch, **release: str) -> None:
    monkeypatch.setattr(packages, "_os_release", lambda: release)
    found = {"absent": None}
    monkeypatch.setattr(shutil, "which", lambda name, **_: found.get(name, f"/usr/bin/{name}"))


def test_a_person_who_is_not_root_is_told_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    on_distribution(monkeypatch, ID="ubuntu", ID_LIKE="debian")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(FalseworkError) as caught:
        packages.ensure(["absent"], print)
    assert "only root can install packages" in caught.value.what
    assert "sudo apt-get install -y --no-install-recommends deb-absent" in (caught.value.fix or "")


def test_fedora_has_the_same_list_under_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    on_distribution(monkeypatch, ID="rocky", ID_LIKE="rhel centos fedora")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(FalseworkError) as caught:
        packages.ensure(["absent"], print)
    assert "rpm-absent" in (caught.value.fix or "")


def test_an_unknown_distribution_gets_the_list_to_install_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    on_distribution(monkeypatch, ID="plan9", PRETTY_NAME="Plan 9")
    with pytest.raises(FalseworkError) as caught:
        packages.ensure(["absent"], print)
    assert "Plan 9" in caught.value.what
    assert "absent" in (caught.value.fix or "")


def test_no_network_is_told_with_the_command_to_try(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_distribution(monkeypatch, ID="debian")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program = tmp_path / "apt-get"
    program.write_text("#!/bin/sh\necho 'E: Could not resolve host'; exit 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said: list[str] = []
    with pytest.raises(FalseworkError) as caught:
        packages.ensure(["absent"], said.append)
    assert caught.value.cause == "E: Could not resolve host"
    assert "check the network" in (caught.value.fix or "")
    assert said == ["installing deb-absent with apt-get"]


def test_what_another_has_installed_meanwhile_is_not_installed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_distribution(monkeypatch, ID="debian")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program = Program("absent", apt="deb-absent", dnf="rpm-absent", looked_for=str(tmp_path / "absent"))
    monkeypatch.setattr(packages, "PROGRAMS", {"absent": program})
    monkeypatch.setattr(packages, "LOCK", tmp_path / "lock")
    said: list[str] = []

    waits = threading.Event()

    def note(sentence: str) -> None:
        said.append(sentence)
        waits.set()

    second = threading.Thread(target=packages.ensure, args=(["absent"], note))
    with only_one(packages.LOCK, pytest.fail):
        second.start()
        assert waits.wait(30)
        (tmp_path / "absent").touch()
    second.join(30)
    assert said == [f"process {os.getpid()} installs packages: waiting for it"]


def test_what_another_is_installing_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program may be there before the libraries it needs are."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program = Program("unpacked", apt="deb-unpacked", dnf="rpm-unpacked", looked_for=str(tmp_path))
    monkeypatch.setattr(packages, "PROGRAMS", {"unpacked": program})
    waits = threading.Event()
    second = threading.Thread(target=packages.ensure, args=(["unpacked"], lambda _: waits.set()))
    with only_one(packages.LOCK, pytest.fail):
        second.start()
        assert waits.wait(30)
        assert second.is_alive()
    second.join(30)
    assert not second.is_alive()


def test_nothing_is_done_when_everything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PROGRAMS", {"sh": Program("sh", apt="dash", dnf="bash")})
    packages.ensure(["sh"], lambda sentence: pytest.fail(sentence))


def test_where_systemd_runs_packages_do_not_see_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "SYSTEMD", tmp_path / "system")
    assert packages.without_daemons(["apt-get", "install"]) == ("apt-get", "install")
    (tmp_path / "system").mkdir()
    hidden = packages.without_daemons(["apt-get", "install"])
    assert hidden[0] == "unshare"
    assert hidden[-3:] == (str(tmp_path), "apt-get", "install")
