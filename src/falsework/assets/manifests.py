"""The manifests, by openshift-install's file names: what a person may look at and change before a machine boots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from falsework.assets import objects
from falsework.assets.certificates import certificate_in, key_in
from falsework.assets.etcd import MANIFEST as ETCD_MANIFEST
from falsework.assets.etcd import etcd_object, speed_of
from falsework.assets.graph import Asset, Given
from falsework.assets.identity import KUBEADMIN, METADATA, hash_of, ids_in
from falsework.assets.ignition import config
from falsework.assets.objects import MCO_NAMESPACE, Object
from falsework.assets.payload import Payload
from falsework.assets.pointers import pointer
from falsework.assets.serialize import to_json, to_yaml
from falsework.site.model import Role, Site

POOLS = (Role.MASTER, Role.WORKER)
SCHEDULER = "manifests/cluster-scheduler-02-config.yml"
CVO_OVERRIDES = "manifests/cvo-overrides.yaml"

_ROOT_CA = "tls/root-ca"
_MCS = "tls/machine-config-server"


def manifest_assets(site: Site, payload: Payload) -> list[Asset]:
    return [
        *_cluster_config(site, payload),
        *_machine_config_server(),
        *_secrets(site),
        *_machine_configs(site),
        _plain("openshift/99_feature-gate.yaml", _feature_gate),
        _plain("openshift/99_falsework_node-rbac.yaml", objects.node_rbac),
        _plain("openshift/openshift-install-manifests.yaml", _installer, version=payload.version),
    ]


def _plain(path: str, build: Callable[..., Object | list[Object]], **facts: Any) -> Asset:
    """A manifest made from facts alone: what the builder gets is what is declared."""
    return Asset(path, lambda _: {path: _dumped(build(**facts))}, facts, editable=True)


def _made_from(
    path: str, needs: tuple[str, ...], build: Callable[..., Object], *, once: bool = False, **facts: Any
) -> Asset:
    """A manifest that has other assets in it."""
    return Asset(path, lambda given: {path: _dumped(build(given, **facts))}, facts, needs, once=once, editable=True)


def _dumped(found: Object | list[Object]) -> bytes:
    return to_yaml(*found) if isinstance(found, list) else to_yaml(found)


def _cluster_config(site: Site, payload: Payload) -> list[Asset]:
    networking = site.networking
    proxy = site.passed_on.get("proxy")
    trusted = bool(site.additional_trust_bundle) and (bool(proxy) or site.additional_trust_bundle_policy == "Always")
    assets = [
        _plain("manifests/cluster-config.yaml", _cluster_config_map, install_config=objects.install_config(site)),
        _plain("manifests/cluster-dns-02-config.yml", objects.dns, domain=site.domain),
        _made_from(
            "manifests/cluster-infrastructure-02-config.yml",
            (METADATA,),
            _infrastructure,
            api_host=site.api_host,
            api_int_host=site.api_int_host,
            masters=site.control_plane_replicas,
            workers=site.compute_replicas,
        ),
        _plain("manifests/cluster-ingress-02-config.yml", objects.ingress, apps_domain=site.apps_domain),
        _plain(
            "manifests/cluster-network-02-config.yml",
            objects.network,
            cluster=networking.cluster_networks,
            service=networking.service_networks,
            network_type=networking.network_type,
        ),
        _plain("manifests/cluster-proxy-01-config.yaml", objects.proxy, settings=proxy, trusted=trusted),
        _plain(SCHEDULER, objects.scheduler, masters_schedulable=site.compute_replicas == 0),
        _made_from(CVO_OVERRIDES, (METADATA,), _cluster_version, channel=payload.channel),
        _plain(
            "manifests/kube-cloud-config.yaml",
            objects.secret,
            name="kube-cloud-cfg",
            namespace="kube-system",
            data={"config": b""},
        ),
    ]
    if speed := speed_of(site):
        assets.append(_plain(ETCD_MANIFEST, etcd_object, speed=speed))
    if site.additional_trust_bundle:
        assets.append(
            _plain(
                "manifests/user-ca-bundle-config.yaml",
                objects.config_map,
                name="user-ca-bundle",
                namespace="openshift-config",
                data={"ca-bundle.crt": site.additional_trust_bundle},
            )
        )
    return assets


def _machine_config_server() -> list[Asset]:
    return [
        _made_from("manifests/kube-system-configmap-root-ca.yaml", (_ROOT_CA,), _root_ca),
        _made_from("manifests/machine-config-server-ca-configmap.yaml", (_ROOT_CA,), _mcs_ca_bundle),
        _made_from("manifests/machine-config-server-ca-secret.yaml", (_ROOT_CA,), _mcs_ca),
        _made_from("manifests/machine-config-server-tls-secret.yaml", (_MCS,), _mcs_tls),
    ]


def _secrets(site: Site) -> list[Asset]:
    return [
        _plain(
            "manifests/openshift-config-secret-pull-secret.yaml",
            objects.secret,
            name="pull-secret",
            namespace="openshift-config",
            data={".dockerconfigjson": (site.pull_secret or '{"auths":{}}').encode()},
            kind="kubernetes.io/dockerconfigjson",
        ),
        _made_from("openshift/99_kubeadmin-password-secret.yaml", (KUBEADMIN,), _kubeadmin, once=True),
    ]


def _machine_configs(site: Site) -> list[Asset]:
    assets = []
    for role in POOLS:
        assets.append(
            _made_from(
                f"openshift/99_openshift-cluster-api_{role}-user-data-secret.yaml",
                (_ROOT_CA,),
                _user_data,
                role=role,
                api_int_host=site.api_int_host,
            )
        )
        assets.append(
            _plain(f"openshift/99_openshift-machineconfig_99-{role}-ssh.yaml", _ssh, role=role, keys=site.ssh_keys)
        )
    return assets


def _cluster_config_map(install_config: Object) -> Object:
    text = to_yaml(install_config).decode()
    return objects.config_map("cluster-config-v1", "kube-system", {"install-config": text})


def _infrastructure(given: Given, **facts: Any) -> Object:
    return objects.infrastructure(given.parsed(METADATA, ids_in).infra_id, **facts)


def _cluster_version(given: Given, channel: str) -> Object:
    return objects.cluster_version(channel, given.parsed(METADATA, ids_in).cluster_id)


def _root_ca(given: Given) -> Object:
    return objects.config_map("root-ca", "kube-system", {"ca.crt": certificate_in(given.files(_ROOT_CA)).decode()})


def _mcs_ca_bundle(given: Given) -> Object:
    data = {"ca-bundle.crt": certificate_in(given.files(_ROOT_CA)).decode()}
    return objects.config_map("machine-config-server-ca", MCO_NAMESPACE, data)


def _mcs_ca(given: Given) -> Object:
    return _tls_secret("machine-config-server-ca", given, _ROOT_CA)


def _mcs_tls(given: Given) -> Object:
    return _tls_secret("machine-config-server-tls", given, _MCS)


def _tls_secret(name: str, given: Given, pair: str) -> Object:
    files = given.files(pair)
    data = {"tls.crt": certificate_in(files), "tls.key": key_in(files)}
    return objects.secret(name, MCO_NAMESPACE, data, "kubernetes.io/tls")


def _kubeadmin(given: Given) -> Object:
    return objects.secret("kubeadmin", "kube-system", {"kubeadmin": hash_of(given.file(KUBEADMIN))})


def _user_data(given: Given, role: Role, api_int_host: str) -> Object:
    content = to_json(pointer(role, api_int_host, certificate_in(given.files(_ROOT_CA))))
    data = {"disableTemplating": b"true\n", "userData": content}
    return objects.secret(f"{role}-user-data", "openshift-machine-api", data)


def _ssh(role: Role, keys: tuple[str, ...]) -> Object:
    return objects.machine_config(f"99-{role}-ssh", role, config(ssh_keys={"core": keys}))


def _feature_gate() -> Object:
    return objects.named(objects.CONFIG_API, "FeatureGate", "cluster", spec={})


def _installer(version: str) -> Object:
    data = {"invoker": "falsework", "version": version}
    return objects.config_map("openshift-install-manifests", "openshift-config", data)
