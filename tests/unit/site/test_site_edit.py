"""A worker comes into a person's files and goes again; their words stay."""

from __future__ import annotations

import pytest

from falsework.errors import UsageError
from falsework.site.edit import SiteTexts, new_worker_names, with_addresses, with_workers, without_machine
from falsework.site.load import default_site, examine_text
from falsework.site.model import Site

LISTED = """\
# mine
network:
  cidr: 192.168.126.0/24   # the lab's
machines:
  - {name: bootstrap, role: bootstrap}   # goes
  - {name: m0, role: master}
  # the fast one
  - name: w0
    role: worker
    address: 192.168.126.50   # fixed

  # the slow one
  - {name: w1, role: worker}   # old

# keyAlgorithm: rsa
upstreamDNS: []
"""
INSTALL = """\
apiVersion: v1
baseDomain: example.test
metadata: {name: c1}
controlPlane: {name: master, replicas: 1}
compute:
- name: worker
  replicas: 2   # for now
platform: {none: {}}
"""


def site_of(texts: SiteTexts) -> Site:
    contents = (None if text is None else text.encode() for text in (texts.install, texts.site))
    examined = examine_text(*contents, routes=tuple)
    assert examined.site, examined.problems
    return examined.site


def test_a_listed_site() -> None:
    before = SiteTexts(INSTALL, LISTED)
    site = site_of(before)
    after = with_workers(before, site, ["w2", "w3"])
    added = "  - {name: w1, role: worker}   # old\n  - {name: w2, role: worker}\n  - {name: w3, role: worker}\n\n# key"
    assert added in (after.site or "")
    assert "replicas: 4   # for now" in (after.install or "")
    grown = site_of(after)
    assert [machine.name for machine in grown.workers] == ["w0", "w1", "w2", "w3"]
    assert grown.machines[: len(site.machines)] == site.machines
    fewer = without_machine(after, grown, "w2")
    assert site_of(fewer).workers == (*grown.workers[:2], grown.workers[3])
    assert "replicas: 3   # for now" in (fewer.install or "")
    # The one it had before keeps the address it had.
    back = without_machine(fewer, site_of(fewer), "w3")
    assert back == SiteTexts(
        INSTALL, LISTED.replace("w1, role: worker}", "w1, role: worker, address: 192.168.126.111}")
    )


def test_the_machine_of_several_lines_goes_whole() -> None:
    before = SiteTexts(None, LISTED)
    after = without_machine(before, site_of(before), "w0")
    assert "fixed" not in (after.site or "")
    assert "# the slow one" in (after.site or "")
    assert site_of(after).workers == site_of(before).workers[1:]


def test_a_machine_of_several_lines_may_get_its_address() -> None:
    text = LISTED.replace("    address: 192.168.126.50   # fixed\n", "")
    before = site_of(SiteTexts(None, text))
    after = with_addresses(text, before, ["w0", "w1"])
    assert "    role: worker\n    address: 192.168.126.111\n\n  # the slow one" in after
    assert site_of(SiteTexts(None, after)) == before


@pytest.mark.parametrize("text", [None, "network:\n  nat: false   # mine"])
def test_a_site_without_a_list_gets_one_and_no_machine_changes(text: str | None) -> None:
    before = SiteTexts(None, text)
    site = site_of(before)
    after = with_workers(before, site, new_worker_names(site, 2))
    grown = site_of(after)
    assert grown.machines[: len(site.machines)] == site.machines
    assert [machine.name for machine in grown.workers][-2:] == ["worker-2", "worker-3"]
    assert (after.site or "").startswith(text or "# Where")
    fewer = site_of(without_machine(before, site, "worker-1"))
    assert fewer.machines == site.machines[:-1]


def test_a_site_whose_workers_join_by_themselves_keeps_its_nought() -> None:
    install = INSTALL.replace("replicas: 2", "replicas: 0")
    before = SiteTexts(install, LISTED)
    assert with_workers(before, site_of(before), ["w2"]).install == install


def test_a_list_in_brackets_is_refused() -> None:
    text = "machines: [{name: b, role: bootstrap}, {name: m, role: master}]\n"
    with pytest.raises(UsageError, match="brackets"):
        with_workers(SiteTexts(None, text), default_site(), ["w"])


def test_free_names() -> None:
    site = default_site()
    assert new_worker_names(site, 3) == ["worker-2", "worker-3", "worker-4"]
