"""install-config.yaml: OpenShift's schema for platform `none`, with its deprecated names.

Here every value is read and checked by itself; what depends on several values, or on site.yaml, is checked
in `validate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from falsework.site import forms
from falsework.site.forms import FormError, formed
from falsework.site.model import Architecture, ClusterNetwork, IPNetwork, Site
from falsework.site.problems import Place, Problems
from falsework.site.reading import Fields, Read, fields_of
from falsework.site.yaml_source import Node, shortened

T = TypeVar("T")

FILE = "install-config.yaml"
API_VERSIONS = ("v1", "v1beta3", "v1beta4")
MAX_REPLICAS = 5000
OVN = "OVNKubernetes"

_CAPABILITY_SETS_WITHOUT_INGRESS = ("None", "v4.11", "v4.12", "v4.13", "v4.14", "v4.15")
_PASSED_ON = ("imageContentSources", "imageDigestSources", "featureSet", "featureGates", "osImageStream")
OTHER_PLATFORMS = (
    "alibabacloud",
    "aws",
    "azure",
    "baremetal",
    "external",
    "gcp",
    "ibmcloud",
    "libvirt",
    "nutanix",
    "openstack",
    "ovirt",
    "powervs",
    "vsphere",
)


@dataclass(frozen=True)
class ClusterNetworkEntry:
    cidr: Read[IPNetwork]
    host_prefix: Read[int]
    """Also from hostSubnetLength, the deprecated way to say it."""
    place: Place


@dataclass
class Pool:
    """controlPlane, or the pool `worker` of compute."""

    replicas: Read[int] = field(default_factory=Read)
    hyperthreading: Read[str] = field(default_factory=Read)
    architecture: Read[Architecture] = field(default_factory=Read)


@dataclass
class InstallConfig:
    """What the file says; absent values are for the defaults to fill in."""

    written: bool = False
    name: Read[str] = field(default_factory=Read)
    base_domain: Read[str] = field(default_factory=Read)
    control_plane: Pool = field(default_factory=Pool)
    compute: Pool = field(default_factory=Pool)
    machine_networks: Read[list[Read[IPNetwork]]] = field(default_factory=Read)
    service_networks: Read[list[Read[IPNetwork]]] = field(default_factory=Read)
    cluster_networks: Read[list[ClusterNetworkEntry]] = field(default_factory=Read)
    network_type: Read[str] = field(default_factory=Read)
    pull_secret: Read[str] = field(default_factory=Read)
    ssh_key: Read[str] = field(default_factory=Read)
    fips: Read[bool] = field(default_factory=Read)
    trust_bundle: Read[str] = field(default_factory=Read)
    trust_bundle_policy: Read[str] = field(default_factory=Read)
    passed_on: dict[str, Any] = field(default_factory=dict)
    place: Place = field(default_factory=lambda: Place(FILE))


def read_install_config(node: Node, problems: Problems, elsewhere: dict[str, str]) -> InstallConfig:
    """`elsewhere` names site.yaml's keys, for those who put one here."""
    top = fields_of(node, "", problems)
    if top is None:
        return InstallConfig(written=True)
    config = InstallConfig(written=True, place=top.place)
    _read_identity(top, config)
    _read_pools(top, config)
    _read_networking(top, config)
    _read_platform(top)
    _read_secrets(top, config)
    _read_the_rest(top, config)
    top.refuse_unknown(elsewhere)
    return config


def _read_identity(top: Fields, config: InstallConfig) -> None:
    top.require("apiVersion", "write apiVersion: v1")
    top.choice("apiVersion", API_VERSIONS)
    top.choice("kind", ("InstallConfig",))
    top.require("baseDomain", "name the domain the cluster is put under, such as example.com")
    config.base_domain = formed(top.text("baseDomain"), "baseDomain", forms.base_domain, top.problems)
    top.require("metadata", "name the cluster: metadata: {name: lab}")
    metadata = top.fields("metadata")
    if metadata is None:
        return
    metadata.require("name", "name the cluster: metadata: {name: lab}")
    config.name = formed(metadata.text("name"), "metadata.name", forms.cluster_name, top.problems)
    metadata.word("creationTimestamp", "a date")
    metadata.refuse_unknown()


def _read_pools(top: Fields, config: InstallConfig) -> None:
    control_plane = top.fields("controlPlane")
    if control_plane is not None:
        control_plane.choice("name", ("master",))
        config.control_plane = _pool(control_plane, minimum=1)
    seen: dict[str, Place] = {}
    for index, node in enumerate(top.items("compute").or_else([])):
        entry = fields_of(node, f"compute[{index}]", top.problems)
        if entry is None:
            continue
        entry.require("name", "write name: worker")
        name = entry.choice("name", ("worker",))
        pool = _pool(entry, minimum=0)
        if name and name.got() in seen:
            first = seen[name.got()].line
            top.problems.error(
                name.where(), f"the pool {name.got()!r} is there twice (first in line {first})", "keep one of them"
            )
        elif name:
            seen[name.got()] = name.where()
            config.compute = pool


def _pool(entry: Fields, minimum: int) -> Pool:
    pool = Pool(
        replicas=entry.integer("replicas", minimum, MAX_REPLICAS),
        hyperthreading=entry.choice("hyperthreading", ("Enabled", "Disabled")),
        architecture=entry.member("architecture", Architecture),
    )
    platform = entry.fields("platform")
    if platform is not None:
        for key in platform.node.keys:
            platform.refuse(key, "platform none has no settings for machines: write platform: {}")
    entry.refuse_unknown()
    return pool


def _read_networking(top: Fields, config: InstallConfig) -> None:
    networking = top.fields("networking")
    if networking is None:
        return
    problems = top.problems

    def cidr(read: Read[str], name: str) -> Read[IPNetwork]:
        return formed(read, name, forms.network, problems)

    old_machine = cidr(networking.word("machineCIDR", "a network"), "networking.machineCIDR")
    config.machine_networks = _renamed(
        networking,
        "machineCIDR",
        Read([old_machine], old_machine.place) if not old_machine.absent else Read(),
        "machineNetwork",
        _entries(networking, "machineNetwork", _machine_network),
        lambda networks: [network.value for network in networks],
    )
    old_service = cidr(networking.word("serviceCIDR", "a network"), "networking.serviceCIDR")
    services = networking.words("serviceNetwork", "a network")
    config.service_networks = _renamed(
        networking,
        "serviceCIDR",
        Read([old_service], old_service.place) if not old_service.absent else Read(),
        "serviceNetwork",
        Read(
            [cidr(word, f"networking.serviceNetwork[{index}]") for index, word in enumerate(services.got())]
            if services
            else None,
            services.place,
        ),
        lambda networks: [network.value for network in networks],
    )
    config.cluster_networks = _renamed(
        networking,
        "clusterNetworks",
        _entries(networking, "clusterNetworks", _cluster_network),
        "clusterNetwork",
        _entries(networking, "clusterNetwork", _cluster_network),
        lambda entries: [(entry.cidr.value, entry.host_prefix.value) for entry in entries],
    )
    config.network_type = _renamed(
        networking,
        "type",
        formed(networking.text("type"), "networking.type", _network_type, problems),
        "networkType",
        formed(networking.text("networkType"), "networking.networkType", _network_type, problems),
        lambda text: text,
    )
    for key, read in (
        ("machineNetwork", config.machine_networks),
        ("serviceNetwork", config.service_networks),
        ("clusterNetwork", config.cluster_networks),
    ):
        if read.value == []:
            problems.error(read.where(), f"networking.{key} is an empty list", "name a network, or leave the key out")
    networking.refuse_unknown()


def _renamed(
    fields: Fields, old_key: str, old: Read[T], new_key: str, new: Read[T], comparable: Callable[[T], object]
) -> Read[T]:
    """The value under its present or its deprecated name; both only if they agree."""
    if old.absent or new.absent:
        return new if old.absent else old
    if old and new and comparable(old.got()) != comparable(new.got()):
        fields.problems.error(
            fields.key_place(old_key),
            f"{fields.shown(old_key)}, the old name of {new_key}, says something else than {new_key}",
            f"keep only {new_key}",
        )
    return new


def _entries(fields: Fields, key: str, entry: Callable[[Fields], T]) -> Read[list[T]]:
    items = fields.items(key)
    if not items:
        return Read(None, items.place)
    found = [
        fields_of(node, f"{fields.shown(key)}[{index}]", fields.problems) for index, node in enumerate(items.got())
    ]
    if None in found:
        return Read(None, items.place)
    return Read([entry(each) for each in found if each is not None], items.place)


def _machine_network(entry: Fields) -> Read[IPNetwork]:
    cidr = _cidr(entry)
    entry.refuse_unknown()
    return cidr


def _cluster_network(entry: Fields) -> ClusterNetworkEntry:
    cidr = _cidr(entry)
    prefix = entry.integer("hostPrefix", 1, 128)
    length = entry.integer("hostSubnetLength", 1, 127)
    if not length.absent and not prefix.absent:
        entry.problems.error(
            entry.key_place("hostSubnetLength"),
            f"{entry.shown('hostSubnetLength')} is the old way to say hostPrefix, which is there too",
            "keep only hostPrefix",
        )
    elif length:
        bits = cidr.got().max_prefixlen if cidr else 32
        prefix = Read(bits - length.got(), length.place)
    elif length.bad:
        prefix = Read(None, length.place)
    entry.refuse_unknown()
    return ClusterNetworkEntry(cidr, prefix, entry.place)


def _cidr(entry: Fields) -> Read[IPNetwork]:
    entry.require("cidr", "write cidr: NETWORK")
    cidr = formed(entry.word("cidr", "a network"), entry.shown("cidr"), forms.network, entry.problems)
    return Read(cidr.value, cidr.place or entry.place)


def _network_type(text: str, name: str) -> str:
    if text in ("OpenShiftSDN", "Kuryr"):
        raise FormError(f"{name} {text} is no longer offered", f"use {OVN}")
    if not text.isalnum() or not text.isascii():
        raise FormError(f"{name} {shortened(text)!r} cannot name a network type", f"use {OVN}")
    return text


def _read_platform(top: Fields) -> None:
    right = "write platform: {none: {}}"
    top.require("platform", right)
    platform = top.fields("platform")
    if platform is None:
        return
    for other in OTHER_PLATFORMS:
        if other in platform.node.keys:
            platform.known.append(other)
            what = f"platform {other} is not for machines you bring yourself"
            top.problems.error(platform.key_place(other), what, right)
    none = platform.fields("none")
    if none is not None:
        none.refuse_unknown()
    elif not any(platform.has(other) for other in OTHER_PLATFORMS) and not platform.has("none"):
        place = platform.node.keys.get("none", platform.place)
        top.problems.error(place, "platform names none of the platforms", right)
    platform.refuse_unknown()


def _read_secrets(top: Fields, config: InstallConfig) -> None:
    config.pull_secret = top.text("pullSecret")
    config.ssh_key = top.text("sshKey")
    config.trust_bundle = top.text("additionalTrustBundle")
    if config.trust_bundle and not _is_certificates(config.trust_bundle.got()):
        top.problems.error(
            config.trust_bundle.where(),
            "additionalTrustBundle holds no certificate that can be read",
            "paste PEM certificates, from -----BEGIN CERTIFICATE----- to the END line",
        )
        config.trust_bundle = Read(None, config.trust_bundle.place)
    config.trust_bundle_policy = top.choice("additionalTrustBundlePolicy", ("Proxyonly", "Always"))


def _is_certificates(text: str) -> bool:
    # Imported only here: hardly any site has a bundle, and the library takes a while to load.
    from cryptography import x509

    try:
        return bool(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        return False


def _read_the_rest(top: Fields, config: InstallConfig) -> None:
    config.fips = top.boolean("fips")
    publish = top.choice("publish", ("External", "Internal"))
    if publish.value == "Internal":
        top.problems.error(publish.where(), "publish is Internal", "platform none knows only External")
    _read_proxy(top)
    _read_capabilities(top)
    cpu_partitioning = top.choice("cpuPartitioningMode", ("None", "AllNodes"))
    if cpu_partitioning:
        config.passed_on["cpuPartitioningMode"] = cpu_partitioning.got()
    for key in ("proxy", "capabilities", *_PASSED_ON):
        if top.has(key):
            config.passed_on[key] = top.plain(key)
    top.refuse("credentialsMode", "platform none has no cloud credentials: leave it out")
    top.refuse("bootstrapInPlace", "a cluster here has a bootstrap machine of its own: leave it out")
    top.refuse("arbiter", "platform none has no arbiter machines: leave it out")
    top.refuse("operatorPublishingStrategy", "platform none publishes everything: leave it out")


def _read_proxy(top: Fields) -> None:
    proxy = top.fields("proxy")
    if proxy is None:
        return
    schemes = {"httpProxy": ("http://",), "httpsProxy": ("http://", "https://")}
    for key, allowed in schemes.items():
        url = proxy.text(key)
        if url and not url.got().startswith(allowed):
            # A proxy's URL may hold a password: it is not shown.
            top.problems.error(
                url.where(), f"proxy.{key} is not a proxy's URL", f"start it with {' or '.join(allowed)}"
            )
    proxy.text("noProxy")
    if not proxy.has("httpProxy") and not proxy.has("httpsProxy"):
        top.problems.error(proxy.place, "proxy names no proxy", "give httpProxy or httpsProxy, or leave proxy out")
    proxy.refuse_unknown()


def _read_capabilities(top: Fields) -> None:
    capabilities = top.fields("capabilities")
    if capabilities is None:
        return
    baseline = capabilities.text("baselineCapabilitySet")
    added = capabilities.words("additionalEnabledCapabilities", "a capability")
    names = [word.value for word in added.or_else([])]
    if baseline.value in _CAPABILITY_SETS_WITHOUT_INGRESS and "Ingress" not in names and not added.bad:
        top.problems.error(
            baseline.where(),
            f"the capability Ingress is required, and the set {baseline.value} is without it",
            "add Ingress to additionalEnabledCapabilities",
        )
    capabilities.refuse_unknown()


def install_config_document(site: Site, *, with_pull_secret: bool = False) -> dict[str, Any]:
    """The site's install-config as OpenShift would complete it, in the present names.

    Without the pull secret it is what the ConfigMap kube-system/cluster-config-v1 holds.
    """

    def pool(name: str, replicas: int, hyperthreading: bool) -> dict[str, Any]:
        return {
            "architecture": str(site.architecture),
            "hyperthreading": "Enabled" if hyperthreading else "Disabled",
            "name": name,
            "platform": {},
            "replicas": replicas,
        }

    def cluster_network(entry: ClusterNetwork) -> dict[str, Any]:
        return {"cidr": str(entry.cidr), "hostPrefix": entry.host_prefix}

    document: dict[str, Any] = {
        "additionalTrustBundlePolicy": site.additional_trust_bundle_policy,
        "apiVersion": "v1",
        "baseDomain": site.base_domain,
        "compute": [pool("worker", site.compute_replicas, site.hyperthreading[1])],
        "controlPlane": pool("master", site.control_plane_replicas, site.hyperthreading[0]),
        "metadata": {"creationTimestamp": None, "name": site.cluster_name},
        "networking": {
            "clusterNetwork": [cluster_network(entry) for entry in site.networking.cluster_networks],
            "machineNetwork": [{"cidr": str(cidr)} for cidr in site.networking.machine_networks],
            "networkType": site.networking.network_type,
            "serviceNetwork": [str(cidr) for cidr in site.networking.service_networks],
        },
        "platform": {"none": {}},
        "publish": site.publish,
        "pullSecret": (site.pull_secret or "") if with_pull_secret else "",
    }
    if site.additional_trust_bundle:
        document["additionalTrustBundle"] = site.additional_trust_bundle
    if site.fips:
        document["fips"] = True
    if site.ssh_keys:
        document["sshKey"] = "\n".join(site.ssh_keys)
    return dict(sorted({**document, **site.passed_on}.items()))
