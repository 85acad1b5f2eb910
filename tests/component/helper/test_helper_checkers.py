"""What the servers themselves say about the configuration rendered for them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helper_namespace import TODAY, sites

from falsework.helper.render import FORMATS, bind, render
from falsework.host import packages

PROGRAMS = {
    "dnsmasq": ["dnsmasq"],
    "bind": ["named-checkconf", "named-checkzone"],
    "dhcpd": ["dhcpd"],
    "kea": ["kea-dhcp4"],
    "haproxy": ["haproxy"],
    "firewalld": ["firewall-offline-cmd"],
    "nftables": ["nft", "unshare"],
    "libvirt-net": ["virt-xml-validate", "xmllint"],
}
MISTAKES = [
    ("dnsmasq", "dhcp-host=52:54:00", "dhcp-host=52:54:xx"),
    ("bind", "192.168.126.101", "192.168.126.301"),
    ("bind", "etcd-0 IN A", "etcd-9 IN A"),
    ("dhcpd", "fixed-address", "fixed-adress"),
    ("kea", "option[93].hex", "option[93].hexx"),
    ("haproxy", "default_backend api", "default_backend apo"),
    ("firewalld", "192.168.126.0/24", "192.168.126.0/77"),
    ("nftables", "192.168.126.0/24", "192.168.126.0/77"),
    ("libvirt-net", "<ip address", "<ipp address"),
]
SITES = sites()


@pytest.fixture(scope="session", autouse=True)
def checkers() -> None:
    packages.ensure([program for programs in PROGRAMS.values() for program in programs], print)


def check(name: str, folder: Path) -> str:
    """What the checkers of a format say about the files in a folder, if it is not that all is well."""
    commands: list[tuple[str | Path, ...]]
    if name == "bind":
        config = folder / bind.CONFIG
        config.write_text(config.read_text().replace(bind.FOLDER, str(folder)))
        zones = [("named-checkzone", "-i", "local", path.stem, path) for path in sorted(folder.glob("*.zone"))]
        # -z loads the zones too: that their names and files are what the config says.
        commands = [("named-checkconf", "-z", config), *zones]
    else:
        (file,) = (path for path in folder.rglob("*") if path.is_file())
        if name == "firewalld":
            (folder / "firewalld.conf").write_text("DefaultZone=falsework\n")
        by_name: dict[str, list[tuple[str | Path, ...]]] = {
            "dnsmasq": [("dnsmasq", "--test", "-C", file)],
            "dhcpd": [("dhcpd", "-t", "-cf", file)],
            "kea": [("kea-dhcp4", "-t", file)],
            "haproxy": [("haproxy", "-c", "-f", file)],
            "firewalld": [("firewall-offline-cmd", "--system-config", folder, "--check-config")],
            # In a namespace of its own: a check looks at the tables that are there.
            "nftables": [("unshare", "--net", "nft", "-c", "-f", file)],
            "libvirt-net": [("virt-xml-validate", file, "network")],
        }
        commands = by_name[name]
    return "".join(_complaints(command) for command in commands)


def _complaints(command: tuple[str | Path, ...]) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    said = done.stdout + done.stderr
    return said if done.returncode or re.search(r"\b(warning|error|has no)\b", said, re.IGNORECASE) else ""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("site", SITES)
def test_good(site: str, name: str, tmp_path: Path) -> None:
    write(render(name, SITES[site], TODAY), tmp_path)
    assert check(name, tmp_path) == ""


@pytest.mark.parametrize(("name", "right", "wrong"), MISTAKES)
def test_a_mistake_would_be_found(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    """Otherwise the other test proves nothing."""
    files = render(name, SITES["default"], TODAY)
    assert any(right in text for text in files.values())
    write({path: text.replace(right, wrong) for path, text in files.items()}, tmp_path)
    assert check(name, tmp_path) != ""


def write(files: dict[str, str], folder: Path) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_every_format_with_a_checker_is_checked() -> None:
    assert FORMATS.keys() - PROGRAMS.keys() == {"pxe", "exports", "ganesha"}
