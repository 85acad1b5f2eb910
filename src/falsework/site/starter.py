"""The first files of a site: from a few answers, with comments that say what can be changed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from falsework.site import defaults
from falsework.site.model import Distribution, IPAddress, Provider

_PLAIN = re.compile(r"[a-z][-a-z0-9.]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


@dataclass(frozen=True)
class Answers:
    cluster_name: str = defaults.CLUSTER_NAME
    base_domain: str = defaults.BASE_DOMAIN
    distribution: Distribution = Distribution.KUBERNETES
    provider: Provider = Provider.NSPAWN
    network: IPv4Network = defaults.LAB_CIDR
    masters: int = defaults.MASTERS
    workers: int = defaults.WORKERS_WITHOUT_A_FILE
    nat: bool = False
    upstream_dns: tuple[IPAddress, ...] = ()
    ssh_key: str = ""
    pull_secret: str = field(default="", repr=False)
    macs: dict[str, str] = field(default_factory=dict)
    """By machine; with any, the machines are listed one by one."""


def install_config_text(answers: Answers) -> str:
    lines = [
        "# What the cluster is: OpenShift's install-config for machines you bring yourself (platform none).",
        "# Every key is described in docs/site-file.md; `falsework validate` checks this file.",
        "apiVersion: v1",
        f"baseDomain: {_text(answers.base_domain)}",
        "metadata:",
        f"  name: {_text(answers.cluster_name)}   # the cluster's domain is NAME.BASEDOMAIN",
        "controlPlane:",
        "  name: master",
        f"  replicas: {answers.masters}   # an odd number, for etcd's sake",
        "compute:",
        "- name: worker",
        f"  replicas: {answers.workers}   # 0: the masters run everything",
        "networking:",
        "  networkType: OVNKubernetes",
        "  machineNetwork:",
        f"  - cidr: {answers.network}   # where the machines are; the same as network.cidr in site.yaml",
        "  clusterNetwork:   # where pods get their addresses",
        f"  - cidr: {defaults.CLUSTER_NETWORK.cidr}",
        f"    hostPrefix: {defaults.CLUSTER_NETWORK.host_prefix}   # each node takes a slice of this length",
        "  serviceNetwork:",
        f"  - {defaults.SERVICE_NETWORK}",
        "platform:",
        "  none: {}",
    ]
    if answers.pull_secret:
        lines.append(f"pullSecret: {_quoted(_on_one_line(answers.pull_secret))}")
    else:
        lines.append("# pullSecret: '{\"auths\": …}'   # needed for distribution openshift alone")
    if answers.ssh_key:
        lines += ["sshKey: |   # may log in as core; one key per line"]
        lines += [f"  {line.strip()}" for line in answers.ssh_key.splitlines() if line.strip()]
    else:
        lines.append("# sshKey: ssh-ed25519 AAAA… you@example   # may log in to the machines as core")
    return "\n".join(lines) + "\n"


def site_text(answers: Answers) -> str:
    gateway, helper = defaults.gateway_of(answers.network), answers.network[2]
    lines = [
        "# Where the cluster is: its machines, their network and the helper. Every key is optional and described in",
        "# docs/site-file.md; `falsework validate` checks this file.",
        f"distribution: {answers.distribution}   # kubernetes or openshift",
        f"provider: {answers.provider}   # nspawn (containers here), libvirt (virtual machines) or manual (real ones)",
        "network:",
        f"  cidr: {answers.network}",
        f"  gateway: {gateway}",
        f"  nat: {_yes(answers.nat)}   # whether the machines reach the world through this host",
        "helper:   # DNS, DHCP, TFTP, HTTP, load balancer, registry and NFS",
        f"  address: {helper}",
    ]
    if answers.upstream_dns:
        lines += ["upstreamDNS:", *(f"- {server}" for server in answers.upstream_dns)]
    else:
        lines += ["# upstreamDNS:   # asked for names outside the cluster", "# - 192.0.2.53"]
    lines += _machine_lines(answers)
    lines += [
        "# keyAlgorithm: ecdsa   # or rsa",
        "# nfsShares:   # exported by the helper to the lab network",
        "# - path: /var/nfs/registry",
        "# timeouts:   # a wait gives up after so long without any progress",
        "#   operators: 15m",
    ]
    return "\n".join(lines) + "\n"


def _machine_lines(answers: Answers) -> list[str]:
    sizes = defaults.SIZES[answers.distribution]
    lines = ["sizes:"]
    for role, size in sizes.items():
        lines.append(f"  {role}: {{cpus: {size.cpus}, memoryMiB: {size.memory_mib}, diskGiB: {size.disk_gib}}}")
    machines = defaults.machine_names(answers.masters, answers.workers)
    if answers.macs:
        addresses = defaults.Addresses(answers.network, [answers.network[1], answers.network[2]])
        lines.append("machines:   # all of them: one bootstrap, and as many of each role as install-config.yaml says")
        for name, role in machines:
            mac = f", mac: {_quoted(answers.macs[name])}" if name in answers.macs else ""
            lines.append(f"- {{name: {name}, role: {role}{mac}, address: {addresses.give(role)}}}")
        return lines
    lines += [
        "# machines:   # made from the replicas in install-config.yaml, unless all of them are listed here:",
        "# - {name: bootstrap, role: bootstrap, mac: '52:54:00:a4:db:5f', address: ADDRESS}",
        "# - {name: master-0, role: master}   # MAC and address may be left out",
    ]
    return lines


def _text(value: str) -> str:
    return value if _PLAIN.fullmatch(value) and value not in _NOT_TEXT else _quoted(value)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _on_one_line(text: str) -> str:
    try:
        return json.dumps(json.loads(text), separators=(",", ":"))
    except (ValueError, RecursionError):
        return " ".join(text.split())


def _yes(value: bool) -> str:
    return "true" if value else "false"
