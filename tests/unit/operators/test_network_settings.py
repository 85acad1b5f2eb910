"""What the network is to be, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.network.cni_config import FILE, cni_config, write_config
from falsework.operators.network.flannel import Images, daemon_set, net_conf
from falsework.operators.network.links import mtu_of
from falsework.operators.network.settings import Settings, settings_of

IMAGES = Images("registry.example/flannel:1", "registry.example/falsework:1")
API = "https://api-int.lab.example:6443"


def config(*cidrs: str, mtu: int | None = None) -> Object:
    networks = [{"cidr": cidr, "hostPrefix": 23} for cidr in cidrs or ("10.128.0.0/14",)]
    spec = {"clusterNetwork": networks, "serviceNetwork": ["172.30.0.0/16"], "networkType": "OVNKubernetes"}
    return {"spec": spec, "status": {"clusterNetworkMTU": mtu} if mtu else {}}


def operator(**network: Any) -> Object:
    return {"spec": {"defaultNetwork": network}}


def settings(found: Object | None = None, wanted: Object | None = None) -> Settings:
    return settings_of(found or config(), wanted or {}, lambda: 1500)


def test_a_cluster_that_says_nothing_has_vxlan_and_what_fits_into_its_links() -> None:
    result = settings()
    assert (result.backend, result.mtu, result.link_mtu) == ("vxlan", 1450, 1500)
    assert net_conf(result) == {
        "EnableIPv4": True,
        "EnableIPv6": False,
        "Network": "10.128.0.0/14",
        "EnableNFTables": True,
        "Backend": {"Type": "vxlan", "Port": 4789, "MTU": 1500},
    }


def test_routes_between_neighbours_add_nothing() -> None:
    result = settings(wanted=operator(type="Flannel", flannelConfig={"backend": "host-gw"}))
    assert (result.mtu, result.link_mtu) == (1500, 1500)
    assert net_conf(result)["Backend"] == {"Type": "host-gw"}


def test_an_mtu_that_was_decided_stays_and_a_persons_word_is_above_it() -> None:
    assert settings(config(mtu=1400)).mtu == 1400
    assert settings(config(mtu=1400), operator(flannelConfig={"mtu": 1300})).mtu == 1300


def test_both_kinds_of_addresses() -> None:
    result = net_conf(settings(config("10.128.0.0/14", "fd01::/48")))
    assert (result["Network"], result["IPv6Network"], result["EnableIPv6"]) == ("10.128.0.0/14", "fd01::/48", True)


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [
        (config(), operator(type="OVNKubernetes"), "no network of the type OVNKubernetes"),
        (config(), operator(flannelConfig={"backend": "udp"}), "udp is no backend"),
        (config(), operator(flannelConfig={"mtu": 100}), "MTU of 100 is too small"),
        (config("10.128.0.0/14", "10.0.0.0/14"), {}, "cannot be the pods' network"),
        ({"spec": {}}, {}, "no network at all"),
    ],
)
def test_what_cannot_be_is_said(found: Object, wanted: Object, said: str) -> None:
    with pytest.raises(FalseworkError, match=said):
        settings(found, wanted)


def test_the_daemon_reaches_the_api_by_its_load_balancer_and_changes_with_its_configuration() -> None:
    first = daemon_set(settings(), API, IMAGES)
    pod = first["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        values = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert values["KUBERNETES_SERVICE_HOST"] == "api-int.lab.example"
        assert values["KUBERNETES_SERVICE_PORT"] == "6443"
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert [container["image"] for container in pod["initContainers"]] == [IMAGES.falsework]
    other = daemon_set(settings(wanted=operator(flannelConfig={"backend": "host-gw"})), API, IMAGES)
    hashes = [one["spec"]["template"]["metadata"]["annotations"] for one in (first, other)]
    assert hashes[0] != hashes[1]


def test_the_runtime_is_told_once(tmp_path: Path) -> None:
    wanted = cni_config(["10.128.2.0/23"], 1450)
    assert write_config(tmp_path, wanted)
    assert not write_config(tmp_path, wanted)
    assert write_config(tmp_path, cni_config(["10.128.4.0/23"], 1450))
    bridge = json.loads((tmp_path / FILE).read_text())["plugins"][0]
    assert (bridge["mtu"], bridge["ipam"]["ranges"]) == (1450, [[{"subnet": "10.128.4.0/23"}]])
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_links_mtu_is_the_kernels_word() -> None:
    assert mtu_of("127.0.0.1") == int(Path("/sys/class/net/lo/mtu").read_text())
    with pytest.raises(FalseworkError, match="no link of this host"):
        mtu_of("192.0.2.1")
