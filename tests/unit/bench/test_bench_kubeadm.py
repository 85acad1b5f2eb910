from __future__ import annotations

import json

import yaml
from kubeadm_peer import configs
from kubeadm_peer.configs import Secrets

from falsework.assets.ignition import files_in
from falsework.release.payload import load_payload
from falsework.site.load import default_site

SITE, PAYLOAD = default_site(), load_payload()
SECRETS = Secrets("abcdef.0123456789abcdef", "00" * 32)


def test_machines_have_a_runtime_and_join_nothing() -> None:
    config = configs.machine_config(SITE, SITE.masters[1], b"authority", ("key",))
    units = {unit["name"]: unit.get("enabled", False) for unit in config["systemd"]["units"]}
    assert units["containerd.service"]
    assert not units["kubelet.service"]
    assert "kube-proxy.path" not in units
    files = files_in(config)
    assert files["/etc/hostname"] == b"master-1.lab.falsework.test\n"
    assert not [path for path, content in files.items() if SECRETS.token.encode() in content]
    assert config["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["key"]}]


def test_init_makes_the_cluster_of_the_site() -> None:
    documents = {document["kind"]: document for document in yaml.safe_load_all(_init())}
    cluster = documents["ClusterConfiguration"]
    assert cluster["kubernetesVersion"] == f"v{PAYLOAD.version}"
    assert cluster["controlPlaneEndpoint"] == "api.lab.falsework.test:6443"
    assert cluster["imageRepository"] == "registry.falsework.internal/release"
    assert documents["InitConfiguration"]["localAPIEndpoint"]["advertiseAddress"] == str(SITE.masters[0].address)
    assert documents["KubeProxyConfiguration"]["mode"] == "nftables"


def test_only_masters_join_as_control_planes() -> None:
    master, worker = (
        yaml.safe_load(configs.join_config(SITE, machine, SECRETS)) for machine in (SITE.masters[1], SITE.workers[0])
    )
    assert master["controlPlane"]["localAPIEndpoint"]["advertiseAddress"] == str(SITE.masters[1].address)
    assert "controlPlane" not in worker
    assert master["discovery"] == worker["discovery"]


def test_flannel_reaches_the_api_through_the_load_balancer() -> None:
    objects = {item["kind"]: item for item in json.loads(configs.flannel(SITE, PAYLOAD))["items"]}
    (container,) = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "KUBERNETES_SERVICE_HOST", "value": SITE.api_host} in container["env"]
    network = json.loads(objects["ConfigMap"]["data"]["net-conf.json"])
    assert network["Network"] == str(SITE.networking.cluster_networks[0].cidr)


def _init() -> bytes:
    return configs.init_config(SITE, PAYLOAD, SECRETS)
