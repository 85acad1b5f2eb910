"""bootstrap.ign: the machine that has everything with it, because there is nobody yet to ask."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from falsework import machine_code
from falsework.assets import node
from falsework.assets.bootstrap_facts import BOOT_ID, BootstrapFacts
from falsework.assets.graph import Files
from falsework.assets.ignition import Config, File, Link, Unit, config
from falsework.assets.manifests import CVO_OVERRIDES
from falsework.assets.objects import Object
from falsework.assets.serialize import documents_in, to_json, to_unit, to_yaml
from falsework.errors import UsageError
from falsework.site.model import Machine

HOME = "/opt/openshift"
DONE = f"{HOME}/.bootkube.done"
MCS_HOME = "/etc/mcs/bootstrap"
SCRIPTS = {
    "approve-csr.sh": "approve-csr",
    "bootkube.sh": "bootkube",
    "release-image-download.sh": "release-image",
    "report-progress.sh": "report-progress",
}
"""What OpenShift's units call, below /usr/local/bin, and what that is here."""


@dataclass(frozen=True)
class Contents:
    """What goes into the config, by where it goes."""

    facts: BootstrapFacts
    code: bytes
    """What runs there of Falsework itself."""
    manifests: Files
    tls: Files
    """File name below tls/ → content."""
    auth: Files
    loopback: bytes
    machine_configs: dict[str, Object]
    pools: dict[str, Object]
    inventory: list[dict[str, str]]
    balancers: list[str]
    """Addresses of those who may speak for a machine to the Machine Config Server."""
    join: Files
    """Full name → the kubeconfig that machine joins with."""
    client_ca: bytes
    ssh_keys: tuple[str, ...]
    pull_secret: str | None
    release_image: str
    sandbox_image: str
    registry_url: str
    registry_ca: bytes


def bootstrap_config(machine: Machine, contents: Contents) -> Config:
    return config(
        files=[
            *_manifest_files(contents.manifests),
            *(File(f"{HOME}/tls/{name}", content, 0o600) for name, content in sorted(contents.tls.items())),
            *(File(f"{HOME}/auth/{name}", content, 0o600) for name, content in sorted(contents.auth.items())),
            File(f"{HOME}/inventory.json", to_json(contents.inventory)),
            File(f"{HOME}/bootstrap.json", contents.facts.to_json()),
            *_programs(contents.code),
            *_machine_config_server(contents),
            *_host(machine, contents),
        ],
        links=[Link(f"{HOME}/bootkube.sh", "/usr/local/bin/bootkube.sh")],
        units=_units(),
        ssh_keys={"core": contents.ssh_keys},
    )


def _host(machine: Machine, contents: Contents) -> list[File]:
    files = [
        *node.runtime_files(contents.sandbox_image, contents.registry_url, contents.registry_ca),
        *node.kubelet_files(node.standalone_kubelet_config(), contents.client_ca),
        # Its short name: it never becomes a node, and static pods are called after the host (`etcd-bootstrap`).
        *node.machine_files(machine, machine.name, contents.sandbox_image),
        node.SUDO,
        # What does not end by itself when it is switched off (an API server without its etcd) is not waited for.
        File("/etc/systemd/system.conf.d/10-stop.conf", to_unit(Manager={"DefaultTimeoutStopSec": "20s"}).encode()),
        # Where a person who follows a guide looks for it, readable for the user they logged in as.
        File("/etc/kubernetes/kubeconfigs/localhost.kubeconfig", contents.loopback, 0o640, group="core"),
        File("/etc/falsework/release.env", f"RELEASE_IMAGE={contents.release_image}\n".encode()),
    ]
    if contents.pull_secret:
        files.append(File("/root/.docker/config.json", contents.pull_secret.encode(), 0o600))
    return files


def _machine_config_server(contents: Contents) -> list[File]:
    """What the Machine Config Server serves before there is an API to ask, and to whom."""
    site = {"machines": contents.inventory, "balancers": contents.balancers}
    boot_id = f"d {PurePosixPath(BOOT_ID).parent} 0755\nf+ {BOOT_ID} 0444 root root - %b\n"
    return [
        File("/etc/tmpfiles.d/falsework-boot-id.conf", boot_id.encode()),
        File(f"{MCS_HOME}/site.json", to_json(site)),
        *(File(f"{MCS_HOME}/machine-pools/{name}.yaml", to_yaml(pool)) for name, pool in contents.pools.items()),
        *(
            File(f"{MCS_HOME}/machine-configs/{name}.yaml", to_yaml(entry), 0o600)
            for name, entry in contents.machine_configs.items()
        ),
        *(File(f"{MCS_HOME}/join/{name}.kubeconfig", content, 0o600) for name, content in contents.join.items()),
    ]


def _programs(code: bytes) -> list[File]:
    return [
        File(machine_code.PATH, code),
        *(
            File(f"/usr/local/bin/{script}", f'#!/bin/sh\nexec {command} "$@"\n'.encode(), 0o555)
            for script, entry_point in SCRIPTS.items()
            for command in (" ".join(machine_code.command(entry_point)),)
        ),
    ]


# Manifests


def _manifest_files(manifests: Files) -> list[File]:
    overrides, restore = _overrides(manifests)
    files = [
        File(
            f"{HOME}/{path}",
            overrides if path == CVO_OVERRIDES and overrides else content,
            0o600 if any(document["kind"] == "Secret" for document in documents_in(path, content)) else 0o644,
        )
        for path, content in sorted(manifests.items())
    ]
    return [*files, File(f"{HOME}/original_cvo_overrides.patch", restore)]


def _overrides(manifests: Files) -> tuple[bytes | None, bytes]:
    """While the bootstrap creates the manifests, the version operator must leave them alone; afterwards the
    patch gives it the list back that the person wrote, which usually is none."""
    listed = _listed(manifests)
    content = manifests.get(CVO_OVERRIDES)
    if content is None:
        return None, to_json({"spec": {"overrides": None}})
    (version, *others) = documents_in(CVO_OVERRIDES, content)
    own = version.get("spec", {}).get("overrides")
    version = {**version, "spec": {**version.get("spec", {}), "overrides": [*(own or []), *listed]}}
    return to_yaml(version, *others), to_json({"spec": {"overrides": own}})


def _listed(manifests: Files) -> list[dict[str, Any]]:
    seen: dict[tuple[str, str, str, str], str] = {}
    for path, content in sorted(manifests.items()):
        for document in documents_in(path, content):
            metadata = document.get("metadata") or {}
            api = str(document.get("apiVersion", ""))
            group = api.rpartition("/")[0]
            key = (group, str(document["kind"]), str(metadata.get("namespace", "")), str(metadata.get("name", "")))
            if key in seen:
                raise UsageError(
                    f"{path} has the same {key[1]} {key[3]} as {seen[key]}",
                    cause="only one of them could be created",
                    fix="remove one of the two and run this again",
                )
            seen[key] = path
    return [
        {"group": group, "kind": kind, "name": name, "namespace": namespace, "unmanaged": True}
        for (group, kind, namespace, name), path in seen.items()
        if kind != "ClusterVersion"
    ]


# Units


def _units() -> list[Unit]:
    return [
        node.SSH,
        node.containerd_unit(),
        node.kubelet_unit(standalone=True),
        _release_image(),
        _bootkube(),
        _approve_csr(),
        _progress(),
    ]


def _release_image() -> Unit:
    text = to_unit(
        Unit={
            "Description": "Have the release image at hand",
            "Wants": "containerd.service",
            "After": "containerd.service",
        },
        Service={
            "Type": "oneshot",
            "RemainAfterExit": "yes",
            "EnvironmentFile": "/etc/falsework/release.env",
            "ExecStart": "/usr/local/bin/release-image-download.sh",
        },
    )
    return Unit("release-image.service", text)


def _bootkube() -> Unit:
    """Not enabled itself: what waits for it pulls it in. It does not wait for the kubelet, which finds the first pods
    when it looks for the first time."""
    text = to_unit(
        Unit={
            "Description": "Bootstrap a Kubernetes cluster",
            "Requires": "release-image.service",
            "Wants": "kubelet.service",
            "After": "release-image.service",
            "ConditionPathExists": f"!{DONE}",
            # However often it is killed, it is started again.
            "StartLimitIntervalSec": "0",
        },
        Service={
            "WorkingDirectory": HOME,
            "EnvironmentFile": "/etc/falsework/release.env",
            "ExecStart": "/usr/local/bin/bootkube.sh",
            "Restart": "on-failure",
            "RestartSec": "2s",
        },
    )
    return Unit("bootkube.service", text)


def _approve_csr() -> Unit:
    return _beside_bootkube(
        "approve-csr.service",
        "Approve the certificate requests of this site's machines",
        f"/usr/local/bin/approve-csr.sh {HOME}/auth/kubeconfig-loopback",
    )


def _progress() -> Unit:
    return _beside_bootkube(
        "progress.service", "Report the completion of the bootstrap", "/usr/local/bin/report-progress.sh"
    )


def _beside_bootkube(name: str, description: str, command: str) -> Unit:
    text = to_unit(
        Unit={"Description": description, "Wants": "bootkube.service", "After": "bootkube.service"},
        Service={
            "WorkingDirectory": HOME,
            "Environment": f"KUBECONFIG={HOME}/auth/kubeconfig-loopback",
            "ExecStart": command,
            "Restart": "on-failure",
            "RestartSec": "5s",
        },
        Install={"WantedBy": "multi-user.target"},
    )
    return Unit(name, text, enabled=True)
