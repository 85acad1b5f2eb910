"""What operators read of the site."""

from __future__ import annotations

import pytest

from falsework.assets import objects
from falsework.assets.bootstrap_facts import Network
from falsework.errors import FalseworkError
from falsework.operators.site_facts import SiteFacts, facts_of
from falsework.site.load import default_site


def test_they_are_what_the_installer_wrote() -> None:
    site = default_site()
    networking = site.networking
    network = objects.network(networking.cluster_networks, networking.service_networks, networking.network_type)
    infrastructure = objects.infrastructure("id", site.api_host, site.api_int_host, 3, 2)
    assert facts_of(network, infrastructure) == SiteFacts(
        tuple(Network(str(entry.cidr), entry.host_prefix) for entry in networking.cluster_networks),
        tuple(map(str, networking.service_networks)),
        f"https://{site.api_int_host}:6443",
    )


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(FalseworkError, match="not described wholly") as caught:
        facts_of({"spec": {"serviceNetwork": ["172.30.0.0/16"]}}, {})
    assert caught.value.cause is not None
    assert "clusterNetwork" in caught.value.cause
    assert "apiServerInternalURI" in caught.value.cause
    assert "serviceNetwork" not in caught.value.cause
