"""Good files to break, and the mark ‸ that shows where a problem is expected."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Network

from hypothesis import HealthCheck, settings

from falsework.site.host_routes import Route
from falsework.site.load import Examined, examine_text
from falsework.site.problems import Place

MARK = "‸"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0k2Q5xY7vVq1j4Rk3m8n6p9s2t5w8z1B4D7G0J3M6P core@example"
PULL_SECRET = '{"auths":{"registry.example.com":{"auth":"Zm9vOmJhcg=="}}}'

INSTALL = f"""\
apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
controlPlane:
  name: master
  hyperthreading: Enabled
  architecture: amd64
  replicas: 3
compute:
- name: worker
  hyperthreading: Enabled
  architecture: amd64
  replicas: 2
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 10.1.0.0/24
  clusterNetwork:
  - cidr: 10.128.0.0/14
    hostPrefix: 23
  serviceNetwork:
  - 172.30.0.0/16
platform:
  none: {{}}
fips: false
publish: External
pullSecret: '{PULL_SECRET}'
sshKey: '{SSH_KEY}'
"""

SITE = """\
distribution: kubernetes
provider: nspawn
keyAlgorithm: rsa
network:
  name: demo
  cidr: 10.1.0.0/24
  gateway: 10.1.0.1
  nat: true
  apiVIP: 10.1.0.5
  ingressVIP: 10.1.0.6
helper:
  name: bastion
  address: 10.1.0.2
  mac: 52:54:00:00:00:02
  memoryMiB: 4096
sizes:
  worker: {cpus: 4, memoryMiB: 8192, diskGiB: 60}
machines:
- name: bootstrap
  role: bootstrap
  mac: 52:54:00:00:00:10
  address: 10.1.0.10
- name: master-a
  role: master
  mac: 52:54:00:00:00:11
  address: 10.1.0.11
- name: master-b
  role: master
  mac: 52:54:00:00:00:12
  address: 10.1.0.12
- name: master-c
  role: master
  mac: 52:54:00:00:00:13
  address: 10.1.0.13
- name: worker-a
  role: worker
  mac: 52-54-00-00-00-21
  address: 10.1.0.21
  cpus: 6
- name: worker-b
  role: worker
  provider: libvirt
upstreamDNS:
- 192.0.2.53
- 2001:db8::53
nfsShares:
- path: /var/nfs/registry
  clients: 10.1.0.0/25
  readOnly: true
timeouts:
  boot: 90s
  operators: 1h
"""

OPENSHIFT_SITE = SITE.replace("distribution: kubernetes", "distribution: openshift").replace(
    "provider: nspawn", "provider: libvirt"
)
SITE_WITHOUT_MACHINES = "distribution: kubernetes\n"


def no_routes() -> tuple[Route, ...]:
    return ()


def routes(*networks: str, interface: str = "eth0") -> tuple[Route, ...]:
    return tuple(Route(interface, IPv4Network(network)) for network in networks)


def examined(install: str | None = INSTALL, site: str | None = SITE) -> Examined:
    return examine_text(
        None if install is None else install.encode(), None if site is None else site.encode(), routes=no_routes
    )


@dataclass(frozen=True)
class Broken:
    """A text with a mistake in it, and the place of the mark that stood before it."""

    text: str
    place: Place


def broken(base: str, old: str, new: str, file: str) -> Broken:
    assert base.count(old) == 1, f"{old!r} must stand in the file exactly once"
    text = base.replace(old, new)
    before, mark, after = text.partition(MARK)
    assert mark, "the place of the problem must be marked"
    return Broken(before + after, Place(file, before.count("\n") + 1, len(before) - before.rfind("\n")))


def quick(examples: int) -> settings:
    """Few examples, for the suite is run at every change; always the same ones where CI says so."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
