"""The rendered nftables rules in a real kernel: what comes through, and what does not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from helper_namespace import Namespace, cable

from eventually import PATIENCE
from falsework.helper.render import dnsmasq, nftables
from falsework.host import packages
from falsework.site.load import default_site

SITE = default_site()
HELPER = str(SITE.helper.address)
INSIDE = str(SITE.lab.cidr[200])
OUTSIDE = "10.9.9.9"
CONTENT = bytes(range(256)) * 100


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """One with an address in the lab and one outside, before a helper with rules, files and open ports."""
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure(["nft", "dnsmasq", "ip"], print)
    folder = tmp_path_factory.mktemp("firewall")
    files = folder / "files"
    files.mkdir()
    (files / "kernel").write_bytes(CONTENT)
    rules = folder / nftables.PATH
    rules.write_text(nftables.render(SITE))
    (folder / "dnsmasq.conf").write_text(dnsmasq.render(SITE, str(files)))
    with contextlib.ExitStack() as stack:
        server, client = stack.enter_context(cable(SITE))
        client.run("ip", "address", "add", f"{INSIDE}/{SITE.lab.cidr.prefixlen}", "dev", "eth0")
        client.run("ip", "address", "add", f"{OUTSIDE}/24", "dev", "eth0")
        server.run("ip", "route", "add", "10.9.9.0/24", "dev", "lab0")
        for port in ("6443", "8080", "9999"):
            web = (sys.executable, "-m", "http.server", "--directory", files, port)
            stack.enter_context(server.daemon(*web, log=folder / port))
        options = ("--pid-file=", f"--dhcp-leasefile={folder}/leases", "--user=root", "--log-facility=-")
        words = ("dnsmasq", "--keep-in-foreground", "-C", folder / "dnsmasq.conf", *options)
        stack.enter_context(server.daemon(*words, log=folder / "log"))
        deadline = time.monotonic() + PATIENCE
        for url in (f"tftp://{HELPER}", *(f"http://{HELPER}:{port}" for port in (6443, 8080, 9999))):
            while not fetched(client, INSIDE, url):
                assert time.monotonic() < deadline, url
        server.run("nft", "-f", rules)
        once = server.run("nft", "list", "ruleset")
        server.run("nft", "-f", rules)
        assert server.run("nft", "list", "ruleset") == once
        yield client


def fetched(client: Namespace, source: str, url: str, patience: float = 2) -> bool:
    words = ("curl", "-s", "--max-time", str(patience), "--interface", source, f"{url}/kernel")
    return subprocess.run(client.words(words), capture_output=True, check=False).stdout == CONTENT


def test_a_whole_file_comes_by_tftp(client: Namespace) -> None:
    assert fetched(client, INSIDE, f"tftp://{HELPER}", PATIENCE)


@pytest.mark.parametrize(
    ("source", "port", "comes_through"),
    [
        (INSIDE, 6443, True),
        (OUTSIDE, 6443, True),
        (INSIDE, 8080, True),
        (OUTSIDE, 8080, False),
        (INSIDE, 9999, False),
        (OUTSIDE, 9999, False),
    ],
)
def test_exactly_what_is_served_is_open(client: Namespace, source: str, port: int, comes_through: bool) -> None:
    # What is kept out gets no answer at all: it is waited for in vain, and not for long.
    patience = PATIENCE if comes_through else 2
    assert fetched(client, source, f"http://{HELPER}:{port}", patience) == comes_through
