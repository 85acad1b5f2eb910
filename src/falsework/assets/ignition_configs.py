"""The Ignition configs as assets: bootstrap, pointers, rendered ones, and one for every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from falsework.assets import certificates, ignition, machine_configs, node
from falsework.assets.bootstrap_config import SCRIPTS, Contents, bootstrap_config
from falsework.assets.bootstrap_facts import IMAGES, BootstrapFacts, Network
from falsework.assets.certificates import (
    BUNDLES,
    KEY_PAIRS,
    LOCALHOST_CA_BUNDLE,
    SERVER_CA_BUNDLE,
    TO_KUBELET_CA_BUNDLE,
    OnBootstrap,
    bundle,
    certificate_in,
    key_in,
    signers_of,
)
from falsework.assets.etcd import speed_of
from falsework.assets.graph import Asset, Files, Given
from falsework.assets.ignition import Config
from falsework.assets.keys_in_folder import ADMIN_KUBECONFIG, SSH_KEY
from falsework.assets.kubeconfig import kubeconfig
from falsework.assets.manifests import POOLS
from falsework.assets.node import NodeFacts
from falsework.assets.objects import Object
from falsework.assets.payload import Payload
from falsework.assets.pointers import pointer
from falsework.assets.rendered_config import render
from falsework.assets.serialize import documents_in, to_json, to_yaml
from falsework.assets.served_config import with_join_credential
from falsework.machine_code import machine_code
from falsework.site.model import Machine, Role, Site

BOOTSTRAP = "bootstrap.ign"
FOLDERS = ("manifests", "openshift")

_ADMIN = "tls/admin-kubeconfig-client"
_ROOT_CA = "tls/root-ca"


def machine_asset(machine: Machine) -> str:
    """The config this machine boots with: a pointer, and what is its own but for its credential, as it travels by
    plain HTTP."""
    return f"machines/{machine.name}.ign"


def complete_asset(machine: Machine) -> str:
    """The same for a site without a Machine Config Server: everything in it."""
    return f"complete/{machine.name}.ign"


def _rendered_asset(role: Role) -> str:
    return f"rendered/{role}"


# Kubeconfig


def kubeconfig_asset(site: Site) -> Asset:
    cluster, host = site.cluster_name, site.api_host

    def make(given: Given) -> Files:
        content = _kubeconfig(given, cluster, host, SERVER_CA_BUNDLE, "admin", _ADMIN)
        return {ADMIN_KUBECONFIG: content, "kubeconfigs/admin.kubeconfig": content}

    facts = {"cluster_name": cluster, "api_host": host}
    return Asset(ADMIN_KUBECONFIG, make, facts, (*signers_of(SERVER_CA_BUNDLE), _ADMIN))


def _kubeconfig(given: Given, cluster: str, host: str, authority: str, user: str, client: str) -> bytes:
    files = given.files(client)
    server = f"https://{host}:6443"
    return kubeconfig(cluster, server, bundle(authority, given), user, certificate_in(files), key_in(files))


# Roles


def pointer_assets(site: Site) -> list[Asset]:
    return [_pointer_asset(role, site.api_int_host) for role in POOLS]


def _pointer_asset(role: Role, api_int_host: str) -> Asset:
    path = f"{role}.ign"

    def make(given: Given) -> Files:
        return {path: to_json(pointer(role, api_int_host, certificate_in(given.files(_ROOT_CA))))}

    return Asset(path, make, {"api_int_host": api_int_host}, (_ROOT_CA,))


def rendered_assets(site: Site, payload: Payload) -> list[Asset]:
    facts = NodeFacts.of(site, payload.sandbox_image)
    return [_rendered(role, facts, site.pull_secret) for role in POOLS]


def _rendered(role: Role, facts: NodeFacts, pull_secret: str | None) -> Asset:
    def make(given: Given) -> Files:
        registry_ca = certificate_in(given.files(_ROOT_CA))
        configs = machine_configs.built_in(role, facts, bundle(TO_KUBELET_CA_BUNDLE, given), registry_ca, pull_secret)
        sources = to_yaml(*configs)
        for folder in FOLDERS:
            configs += machine_configs.of_role(role, given.folder(folder))
        rendered = render(role, configs)
        return {
            f"rendered/{role}.ign": to_json(rendered.served),
            f"rendered/{role}-machine-config.yaml": to_yaml(rendered.machine_config),
            f"rendered/{role}-pool.yaml": to_yaml(rendered.pool),
            f"rendered/{role}-sources.yaml": sources,
        }

    return Asset(
        _rendered_asset(role),
        make,
        {"node": facts, "pull_secret": pull_secret},
        (*signers_of(TO_KUBELET_CA_BUNDLE), _ROOT_CA),
        FOLDERS,
    )


def _served_in(files: Files) -> Config:
    config: Config = json.loads(next(content for path, content in files.items() if path.endswith(".ign")))
    return config


def _objects_in(files: Files, ending: str) -> tuple[Object, ...]:
    path, content = next((path, content) for path, content in files.items() if path.endswith(ending))
    return documents_in(path, content)


# Bootstrap


def bootstrap_asset(site: Site, payload: Payload) -> Asset:
    rows = [row for row in certificates.rows(site) if row.on_bootstrap is not OnBootstrap.NOTHING]
    bootstrap = site.bootstrap
    inventory = [
        {
            "name": site.fqdn(machine),
            "role": str(machine.role),
            "mac": machine.mac,
            "address": str(machine.address),
        }
        for machine in site.machines
    ]
    joining = (*site.masters, *site.workers)
    told = bootstrap_facts(site, payload)
    code = machine_code(*SCRIPTS.values())
    facts: dict[str, Any] = {
        "told": told,
        "code": hashlib.sha256(code).hexdigest(),
        "bootstrap": bootstrap,
        "balancers": sorted({str(site.helper.address), str(site.api_vip)}),
        "machines": inventory,
        "ssh_keys": site.ssh_keys,
        "pull_secret": site.pull_secret,
        "release": payload,
        "registry_url": node.registry_url(site),
    }

    def make(given: Given) -> Files:
        internal = _kubeconfig(given, site.cluster_name, site.api_int_host, SERVER_CA_BUNDLE, "admin", _ADMIN)
        loopback = _kubeconfig(given, site.cluster_name, "localhost", LOCALHOST_CA_BUNDLE, "loopback", _ADMIN)
        rendered = {role: given.files(_rendered_asset(role)) for role in POOLS}
        # With the parts that are no manifests: in the cluster, all of a pool's parts are objects.
        configs = [
            found
            for files in rendered.values()
            for ending in ("-machine-config.yaml", "-sources.yaml")
            for found in _objects_in(files, ending)
        ]
        contents = Contents(
            facts=told,
            code=code,
            manifests={path: content for folder in FOLDERS for path, content in given.folder(folder).items()},
            tls=_tls(given, rows),
            auth={"kubeconfig": internal, "kubeconfig-loopback": loopback},
            loopback=loopback,
            machine_configs={str(entry["metadata"]["name"]): entry for entry in configs},
            pools={str(role): _objects_in(files, "-pool.yaml")[0] for role, files in rendered.items()},
            inventory=inventory,
            balancers=facts["balancers"],
            join={site.fqdn(machine): _join_kubeconfig(given, site, machine) for machine in joining},
            client_ca=bundle(TO_KUBELET_CA_BUNDLE, given),
            ssh_keys=(*site.ssh_keys, _public_key(given)),
            pull_secret=site.pull_secret,
            release_image=payload.release_image,
            sandbox_image=payload.sandbox_image,
            registry_url=facts["registry_url"],
            registry_ca=certificate_in(given.files(_ROOT_CA)),
        )
        return {BOOTSTRAP: to_json(bootstrap_config(bootstrap, contents))}

    needs = (
        *(row.asset for row in rows),
        *(f"tls/{name}" for name in KEY_PAIRS),
        _ADMIN,
        SSH_KEY,
        *(_rendered_asset(role) for role in POOLS),
        *dict.fromkeys(need for machine in joining for need in _joining(machine)),
    )
    return Asset(BOOTSTRAP, make, facts, needs, FOLDERS)


def bootstrap_facts(site: Site, payload: Payload) -> BootstrapFacts:
    networking = site.networking
    return BootstrapFacts(
        cluster_name=site.cluster_name,
        domain=site.domain,
        api_host=site.api_host,
        api_int_host=site.api_int_host,
        name=site.bootstrap.name,
        fqdn=site.fqdn(site.bootstrap),
        address=str(site.bootstrap.address),
        service_networks=tuple(str(cidr) for cidr in networking.service_networks),
        cluster_networks=tuple(
            Network(str(network.cidr), network.host_prefix) for network in networking.cluster_networks
        ),
        control_plane_replicas=site.control_plane_replicas,
        masters=tuple(str(machine.address) for machine in site.masters),
        etcd_speed=speed_of(site),
        # Ours sends nobody to the bootstrap while a master is ready; of another one nothing is known.
        api_shutdown_delay=2 if site.api_vip == site.helper.address else 30,
        release_version=payload.version,
        release_image=payload.release_image,
        images={name: payload.images[name] for name in IMAGES},
    )


def _tls(given: Given, rows: list[certificates.Row]) -> Files:
    """Below tls/: keys only of what is used on the machine."""
    result: Files = {}
    for row in rows:
        files = given.files(row.asset)
        result[f"{row.name}.crt"] = certificate_in(files)
        if row.on_bootstrap is OnBootstrap.PAIR:
            result[f"{row.name}.key"] = key_in(files)
    for name in KEY_PAIRS:
        result |= {path.removeprefix("tls/"): content for path, content in given.files(f"tls/{name}").items()}
    return result | {f"{entry.name}.crt": bundle(entry.name, given) for entry in BUNDLES}


# Machines


def machine_assets(site: Site, payload: Payload) -> list[Asset]:
    """For every master and worker its own two configs: with a pointer, and complete."""
    return [
        asset for machine in (*site.masters, *site.workers) for asset in _machine(site, machine, payload.sandbox_image)
    ]


def _machine(site: Site, machine: Machine, sandbox_image: str) -> tuple[Asset, Asset]:
    host, fqdn = site.api_int_host, site.fqdn(machine)
    facts = {
        "cluster_name": site.cluster_name,
        "api_int_host": host,
        "machine": [machine.role, machine.address, machine.provider, fqdn],
        "sandbox_image": sandbox_image,
    }

    def own(given: Given) -> Config:
        return ignition.config(
            files=[node.SUDO, *node.machine_files(machine, fqdn, sandbox_image)],
            units=[node.SSH],
            ssh_keys={"core": (_public_key(given),)},
        )

    def pointing(given: Given) -> Files:
        start = pointer(machine.role, host, certificate_in(given.files(_ROOT_CA)))
        return {machine_asset(machine): _with(start, own(given))}

    def complete(given: Given) -> Files:
        served = given.parsed(_rendered_asset(machine.role), _served_in)
        joining = with_join_credential(served, _join_kubeconfig(given, site, machine))
        return {complete_asset(machine): _with(joining, own(given))}

    return (
        Asset(machine_asset(machine), pointing, facts, (SSH_KEY, _ROOT_CA)),
        Asset(complete_asset(machine), complete, facts, (SSH_KEY, *_joining(machine), _rendered_asset(machine.role))),
    )


def _join_kubeconfig(given: Given, site: Site, machine: Machine) -> bytes:
    credential = f"tls/join/{machine.name}"
    return _kubeconfig(given, site.cluster_name, site.api_int_host, SERVER_CA_BUNDLE, "kubelet", credential)


def _joining(machine: Machine) -> tuple[str, ...]:
    """What the machine's kubeconfig is made from."""
    return (f"tls/join/{machine.name}", *signers_of(SERVER_CA_BUNDLE))


def _with(config: Config, own: Config) -> bytes:
    return to_json(ignition.merge(config, own))


def _public_key(given: Given) -> str:
    """Of the key that lets Falsework itself in."""
    return given.files(SSH_KEY)[f"{SSH_KEY}.pub"].decode().strip()


def inventory_of(document: bytes) -> dict[str, Role]:
    """Node name → role, out of the inventory the bootstrap machine has: what `join.refusal` compares with."""
    return {entry["name"]: Role(entry["role"]) for entry in json.loads(document)}
