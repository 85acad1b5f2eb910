"""dnsmasq is restarted only where an address would go to another machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from stage_samples import lab_in

from falsework.lab.folder import Lab
from falsework.lab.marker import mark
from falsework.site.load import default_site
from falsework.stages import addresses

SITE = default_site()
WORKER = SITE.workers[1]


class Provider:
    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def execute(self, name: str, words: tuple[str, ...]) -> None:
        self.told.append((name, *words))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider()
    monkeypatch.setattr(addresses, "provider_of", lambda _: provider)
    monkeypatch.setattr(addresses, "inside", lambda *_: None)
    return provider


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    (tmp_path / "site").mkdir()
    mark(lab_in(tmp_path))
    return lab_in(tmp_path)


def test_an_address_is_made_free_for_another_machine_alone(lab: Lab, provider: Provider) -> None:
    addresses.make_free(lab, SITE.helper, SITE.machines)
    addresses.give_back(lab, SITE.helper, WORKER.mac, str(WORKER.address))
    # The same machine again, and one elsewhere: what dnsmasq knows is right for both.
    addresses.make_free(lab, SITE.helper, SITE.workers)
    assert provider.told == []
    other = dataclasses.replace(WORKER, name="worker-9", mac="52:54:00:00:00:09")
    addresses.make_free(lab, SITE.helper, [other])
    assert provider.told == [(SITE.helper.name, "systemctl", "restart", "dnsmasq")]
    addresses.make_free(lab, SITE.helper, [other])
    assert len(provider.told) == 1
