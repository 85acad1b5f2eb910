"""The files and units of the helper machine, and what a change of the site changes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from hashlib import sha256

import pytest
from helper_samples import rich, sites

from falsework import machine_code
from falsework.assets.ignition import File, files_in
from falsework.helper.machine import LISTING, HelperFiles, asset_names, helper_config
from falsework.helper.services import Reaction
from falsework.helper.update import Changes, bring_up_to_date, changes_to
from falsework.process import Finished
from falsework.site.load import default_site
from falsework.site.model import Site


def made(site: Site, code: bytes = b"code", **assets: bytes) -> HelperFiles:
    given = {name: assets.get(name, f"content of {name}\n".encode()) for name in asset_names(site)}
    return helper_config(site, given, code)


def sums(helper: HelperFiles) -> dict[str, str]:
    files = helper.all_files | helper.unit_files
    return {path: sha256(file.content).hexdigest() for path, file in files.items()}


def units(helper: HelperFiles) -> list[str]:
    return [service.unit.name for service in helper.services]


@pytest.mark.parametrize("name", sites())
def test_no_file_is_there_twice_and_all_are_listed(name: str) -> None:
    helper = made(sites()[name])
    carried = files_in(helper.ignition())
    paths = [file.path for service in helper.services for file in service.all_files] + [
        file.path for file in helper.files
    ]
    assert sorted(paths) == sorted(set(paths))
    assert sorted(carried) == sorted([*paths, LISTING])
    assert carried[LISTING].decode().splitlines() == sorted([*paths, *helper.unit_files])


def test_services_are_those_the_site_needs() -> None:
    everything = ["nftables", "ssh", "dnsmasq", "haproxy", "registry", "boot-server"]
    assert units(made(default_site())) == [f"{name}.service" for name in everything]
    # Its load balancer is elsewhere, its images are OpenShift's, and it has shares.
    expected = ["nftables", "ssh", "dnsmasq", "nfs-ganesha", "boot-server"]
    assert units(made(rich())) == [f"{name}.service" for name in expected]


def test_all_units_are_enabled() -> None:
    entries = made(rich()).ignition()["systemd"]["units"]
    assert all(entry["enabled"] for entry in entries)


def test_what_holds_secrets_is_closed() -> None:
    helper = made(default_site())
    secret = {path: file for path, file in helper.all_files.items() if path.endswith((".ign", ".key"))}
    assert len(secret) == 7
    assert all(file.mode & 0o007 == 0 for file in secret.values())


def test_both_kinds_of_ssh_keys_are_let_in() -> None:
    site = dataclasses.replace(default_site(), ssh_keys=("ssh-ed25519 AAAA someone",))
    (user,) = made(site).ignition()["passwd"]["users"]
    assert user["name"] == "core"
    assert user["sshAuthorizedKeys"] == ["ssh-ed25519 AAAA someone", "content of auth/bootstrap-ssh-key.pub"]


# Changes


def test_nothing_changed() -> None:
    helper = made(default_site())
    assert not changes_to(helper, sums(helper))


def test_a_machine_that_left_is_told_to_those_who_know_machines() -> None:
    site = default_site()
    gone = site.machines[-1]
    changes = changes_to(made(dataclasses.replace(site, machines=site.machines[:-1])), sums(made(site)))
    assert f"/var/lib/falsework/ignition/machines/{gone.name}.ign" in changes.remove
    # The name server notices by itself.
    assert changes.commands == (("systemctl", "reload", "haproxy.service"),)
    assert "/etc/falsework/machines/names/site" in {file.path for file in changes.write}
    assert changes.write[-1].path == LISTING


def test_new_code_restarts_the_boot_server_alone() -> None:
    changes = changes_to(made(default_site(), b"new"), sums(made(default_site())))
    assert [file.path for file in changes.write] == [machine_code.PATH]
    assert changes.commands == (("systemctl", str(Reaction.RESTART), "boot-server.service"),)


def test_a_config_of_a_machine_is_told_to_nobody() -> None:
    changes = changes_to(made(default_site(), **{"bootstrap.ign": b"new"}), sums(made(default_site())))
    assert [file.path for file in changes.write] == ["/var/lib/falsework/ignition/bootstrap.ign"]
    assert changes.commands == ()


def test_services_come_and_go() -> None:
    site = dataclasses.replace(rich(), nfs_shares=())
    coming = changes_to(made(rich()), sums(made(site)))
    assert coming.commands[0] == ("systemctl", "daemon-reload")
    assert ("systemctl", "enable", "nfs-ganesha.service") in coming.commands
    assert coming.stop == ()
    going = changes_to(made(site), sums(made(rich())))
    assert going.stop == ("nfs-ganesha.service",)
    assert "/etc/ganesha/ganesha.conf" in going.remove
    assert going.commands[0] == ("systemctl", "daemon-reload")


class FakeMachine:
    """A helper that remembers its files and what it was told, and can be told to break."""

    def __init__(self, helper: HelperFiles) -> None:
        self.files = {path: file.content for path, file in (helper.all_files | helper.unit_files).items()}
        self.told: list[tuple[str, ...]] = []
        self.broken = ""

    def execute(self, name: str, words: Sequence[str]) -> Finished:
        assert name == "helper"
        output = ""
        if words[0] == "sh" and words[3] == "cat":
            output = self.files.get(words[4], b"").decode()
        elif words[0] == "sh":
            here = [path for path in words[4:] if path in self.files]
            output = "".join(f"{sha256(self.files[path]).hexdigest()}  {path}\n" for path in here)
        elif words[0] == "rm":
            for path in words[3:]:
                self.files.pop(path, None)
        else:
            if self.broken and self.broken in words:
                raise KeyboardInterrupt
            self.told.append(tuple(words))
        return Finished(tuple(words), 0, output)

    def write_files(self, name: str, files: Sequence[File]) -> None:
        assert name == "helper"
        assert all(file.mode & 0o400 for file in files)
        self.files |= {file.path: file.content for file in files}


def brought(machine: FakeMachine, helper: HelperFiles) -> Changes:
    return bring_up_to_date(helper, machine, "helper")


def test_a_kill_in_between_loses_no_reload() -> None:
    site = default_site()
    machine, wanted = FakeMachine(made(site)), made(dataclasses.replace(site, machines=site.machines[:-1]))
    machine.broken = "reload"
    with pytest.raises(KeyboardInterrupt):
        brought(machine, wanted)
    machine.broken, machine.told = "", []
    changes = brought(machine, wanted)
    assert not changes.write
    assert ("systemctl", "reload", "haproxy.service") in machine.told
    machine.told = []
    assert not brought(machine, wanted)
    assert machine.told == []
    assert sorted(machine.files) == sorted(wanted.all_files | wanted.unit_files)
