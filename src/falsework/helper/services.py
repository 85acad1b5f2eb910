"""The helper's services: their units, the files each one reads, and what to do with it when those change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from falsework.assets import node
from falsework.assets.certificates import REGISTRY_ROW
from falsework.assets.ignition import File, Unit
from falsework.assets.serialize import to_unit, to_yaml
from falsework.helper.render import dnsmasq, ganesha, haproxy, nftables
from falsework.site import ports
from falsework.site.model import Distribution, Site

STATE = "/var/lib/falsework"
"""What the services remember."""
REGISTRY_STORE = "/var/lib/registry"
"""Bound here, to be read alone: see `registry_store`."""
LEASES = f"{STATE}/dnsmasq.leases"
BALANCER_CONFIG = f"/etc/haproxy/{haproxy.PATH}"

_REGISTRY_CERTIFICATE = f"tls/{REGISTRY_ROW}.crt"
_REGISTRY_KEY = f"tls/{REGISTRY_ROW}.key"
_AT_BOOT = {"WantedBy": "multi-user.target"}
_KEEP_UP = {"Restart": "always", "RestartSec": "500ms"}


class Reaction(StrEnum):
    """To a change of a file: the word for systemctl."""

    RELOAD = "reload"
    RESTART = "restart"


@dataclass(frozen=True)
class Service:
    unit: Unit
    files: tuple[File, ...] = ()
    reaction: Reaction = Reaction.RESTART
    noticed: tuple[File, ...] = ()
    """Those it looks at by itself."""

    @property
    def all_files(self) -> tuple[File, ...]:
        return (*self.files, *self.noticed)


def of(site: Site, assets: Mapping[str, bytes]) -> Iterator[Service]:
    """Without the boot server, whose code is not here."""
    yield _firewall(site)
    yield Service(node.SSH)
    yield _names_and_leases(site)
    if site.helper.address in (site.api_vip, site.ingress_vip):
        yield _balancer(site)
    if has_registry(site):
        yield _registry(assets)
    if site.nfs_shares:
        yield _shares(site)


def asset_names(site: Site) -> tuple[str, ...]:
    return (_REGISTRY_CERTIFICATE, _REGISTRY_KEY) if has_registry(site) else ()


def has_registry(site: Site) -> bool:
    """OpenShift has its images elsewhere, and its certificates are not ours to issue."""
    return site.distribution is Distribution.KUBERNETES


def _firewall(site: Site) -> Service:
    rules = f"/etc/{nftables.PATH}"
    load = f"/usr/sbin/nft -f {rules}"
    unit = to_unit(
        Unit={
            "Description": "Falsework: what may come in to the helper",
            "DefaultDependencies": "no",
            "Wants": "network-pre.target",
            "Before": "network-pre.target shutdown.target",
            "Conflicts": "shutdown.target",
        },
        Service={"Type": "oneshot", "RemainAfterExit": "yes", "ExecStart": load, "ExecReload": load},
        Install={"WantedBy": "sysinit.target"},
    )
    return Service(
        Unit("nftables.service", unit, enabled=True),
        (File(rules, nftables.render(site).encode(), 0o600),),
        Reaction.RELOAD,
    )


def _names_and_leases(site: Site) -> Service:
    """It reads its config only when it starts, and the files about machines when it is told to as well; leases are kept
    in a file."""
    config, machines = "/etc/dnsmasq.conf", "/etc/falsework/machines"
    options = f"--keep-in-foreground --conf-file={config} --log-facility=- --dhcp-leasefile={LEASES} --pid-file"
    unit = to_unit(
        Unit={"Description": "Falsework: DNS, DHCP and TFTP", "After": "network.target", "Before": "nss-lookup.target"},
        Service={
            "ExecStart": f"/usr/sbin/dnsmasq {options}",
            **_KEEP_UP,
        },
        Install=_AT_BOOT,
    )
    return Service(
        Unit("dnsmasq.service", unit, enabled=True),
        (File(config, dnsmasq.render(site, machines=machines).encode()),),
        noticed=tuple(File(f"{machines}/{name}", text.encode()) for name, text in dnsmasq.machine_files(site).items()),
    )


def _balancer(site: Site) -> Service:
    """A master process hands the listening sockets from the old worker to the new one, so a reload loses nobody; the
    old one stays until its last connection ends. What it knows of the servers, and what it was told of them (drained
    ones, say), goes to the new one through a file."""
    config = BALANCER_CONFIG
    ask = f"echo show servers state | socat - UNIX-CONNECT:{haproxy.RUNTIME_SOCKET}"
    unit = to_unit(
        Unit={"Description": "Falsework: load balancer", "After": "network.target nss-lookup.target"},
        Service={
            "Type": "notify",
            "ExecStartPre": f"/bin/sh -ec 'echo {haproxy.NO_STATE} >{haproxy.STATE_FILE}'",
            "ExecStart": f"/usr/sbin/haproxy -Ws -f {config}",
            "ExecReload": [
                f"/usr/sbin/haproxy -c -q -f {config}",
                f"/bin/sh -ec '{ask} >{haproxy.STATE_FILE}'",
                "/bin/kill -USR2 $MAINPID",
            ],
            "KillMode": "mixed",
            "SuccessExitStatus": "143",
            "RuntimeDirectory": "haproxy",
            "LimitNOFILE": "16384",
            **_KEEP_UP,
        },
        Install=_AT_BOOT,
    )
    return Service(
        Unit("haproxy.service", unit, enabled=True),
        (File(config, haproxy.render(site, state_file=haproxy.STATE_FILE).encode()),),
        Reaction.RELOAD,
    )


def _registry(assets: Mapping[str, bytes]) -> Service:
    name, folder = "registry.service", "/etc/falsework/registry"
    credentials = f"/run/credentials/{name}"
    config = {
        "version": 0.1,
        "log": {"level": "warn", "formatter": "json"},
        "storage": {
            "filesystem": {"rootdirectory": REGISTRY_STORE},
            # The release is what it is: nodes pull, nobody pushes.
            "maintenance": {"uploadpurging": {"enabled": False}, "readonly": {"enabled": True}},
        },
        "http": {
            "addr": f":{ports.REGISTRY}",
            # Only uploads need one, of which there are none; without it the registry complains.
            "secret": "unused",
            "tls": {"certificate": f"{folder}/{REGISTRY_ROW}.crt", "key": f"{credentials}/key"},
        },
    }
    unit = to_unit(
        Unit={
            "Description": "Falsework: image registry",
            "After": "network.target",
            "RequiresMountsFor": REGISTRY_STORE,
        },
        Service={
            # Nobody's user: it may read the store, its certificate and, through systemd, its key.
            "DynamicUser": "yes",
            "LoadCredential": f"key:{folder}/{REGISTRY_ROW}.key",
            "Environment": "OTEL_TRACES_EXPORTER=none",
            "ExecStart": f"/usr/bin/registry serve {folder}/config.yml",
            "CapabilityBoundingSet": "",
            "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
            **_KEEP_UP,
        },
        Install=_AT_BOOT,
    )
    files = (
        File(f"{folder}/config.yml", to_yaml(config)),
        File(f"{folder}/{REGISTRY_ROW}.crt", assets[_REGISTRY_CERTIFICATE]),
        File(f"{folder}/{REGISTRY_ROW}.key", assets[_REGISTRY_KEY], 0o600),
    )
    return Service(Unit(name, unit, enabled=True), files)


def _shares(site: Site) -> Service:
    config = f"/etc/ganesha/{ganesha.PATH}"
    unit = to_unit(
        Unit={
            "Description": "Falsework: NFS shares",
            "Requires": "rpcbind.service",
            "After": "rpcbind.service network.target dbus.socket",
            "RequiresMountsFor": [share.path for share in site.nfs_shares],
        },
        Service={
            "ExecStart": f"/usr/bin/ganesha.nfsd -F -L STDOUT -N EVENT -p /run/ganesha/pid -f {config}",
            "RuntimeDirectory": "ganesha",
            "StateDirectory": "nfs/ganesha",
            "LimitNOFILE": "16384",
            **_KEEP_UP,
        },
        Install=_AT_BOOT,
    )
    return Service(Unit("nfs-ganesha.service", unit, enabled=True), (File(config, ganesha.render(site).encode()),))
