"""Puts both files and the defaults together: all rules between values, then the Site."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from falsework.site import check_machines, defaults, forms
from falsework.site.check_machines import Counts
from falsework.site.check_networks import Used, check_host_routes, check_networks
from falsework.site.forms import FormError
from falsework.site.host_routes import HostRoutes
from falsework.site.install_config import InstallConfig
from falsework.site.model import (
    Architecture,
    ClusterNetwork,
    Distribution,
    Helper,
    IPNetwork,
    KeyAlgorithm,
    LabNetwork,
    Machine,
    Networking,
    NfsShare,
    Provider,
    Role,
    Site,
    Size,
    Timeouts,
)
from falsework.site.problems import Place, Problems
from falsework.site.reading import Read
from falsework.site.site_config import FILE, MachineEntry, SiteConfig, SizeEntry


def complete(install: InstallConfig, config: SiteConfig, routes: HostRoutes, problems: Problems) -> Site | None:
    """The site, or None when there are errors. Problems told while reading are not told again."""
    distribution = config.distribution.or_else(Distribution.KUBERNETES)
    counts = check_machines.counts_of(install, config)
    lab = _lab_cidr(install, config, problems)
    check_machines.check_counts(install, config, problems)
    check_machines.check_names(install, config, distribution, counts, problems)
    check_machines.check_macs(config, problems)
    if not lab.bad:
        cidr = lab.or_else(defaults.LAB_CIDR)
        check_machines.check_addresses(config, cidr, problems)
        if counts:
            place = lab.place or install.compute.replicas.place or config.machines.place or Place(FILE)
            check_machines.check_room(config, counts, cidr, place, problems)
    check_machines.check_providers(config, distribution, problems)
    nodes = counts.masters + counts.workers if counts else None
    check_networks(install, lab, distribution, nodes, problems)
    _check_architecture(install, problems)
    _check_services(config, distribution, problems)
    ssh_keys: tuple[str, ...] = ()
    pull_secret: str | None = None
    if not config.distribution.bad:
        ssh_keys = _ssh_keys(install, distribution, problems)
        pull_secret = _pull_secret(install, distribution, problems)
        _check_fips(install, distribution, problems)
    if counts is None or problems.has_errors():
        return None
    site = _build(install, config, lab.or_else(defaults.LAB_CIDR), counts)
    site = replace(site, ssh_keys=ssh_keys, pull_secret=pull_secret)
    _check_routes(site, lab, install, routes, problems)
    return None if problems.has_errors() else site


def _lab_cidr(install: InstallConfig, config: SiteConfig, problems: Problems) -> Read[IPv4Network]:
    """The network the machines are on: network.cidr, else the first machineNetwork, else the default."""
    written = config.network.cidr
    machine = install.machine_networks.or_else([])
    if not written.absent:
        networks = [each.got() for each in machine if each]
        if written and len(networks) == len(machine) and networks:
            cidr = written.got()
            if not any(isinstance(network, IPv4Network) and cidr.subnet_of(network) for network in networks):
                problems.error(
                    written.where(),
                    f"network.cidr {cidr} is outside networking.machineNetwork of install-config.yaml",
                    "use the same network in both",
                )
        return written
    if install.machine_networks.bad or any(not each for each in machine):
        return Read(None, install.machine_networks.place)
    for each in machine:
        if each.got().version == 4:
            try:
                return Read(forms.lab_network(str(each.got()), "machineNetwork"), each.place)
            except FormError as wrong:
                problems.error(each.where(), wrong.what, f"{wrong.right}, or set network.cidr in site.yaml")
                return Read(None, each.place)
    if machine:
        problems.error(
            machine[0].where(), "machineNetwork has no IPv4 network", "machines have IPv4 addresses: add one"
        )
        return Read(None, machine[0].place)
    return Read()


def _check_architecture(install: InstallConfig, problems: Problems) -> None:
    masters, workers = install.control_plane.architecture, install.compute.architecture
    if masters.bad or workers.bad:
        return
    if masters.or_else(Architecture.AMD64) != workers.or_else(Architecture.AMD64):
        place = workers.place or masters.where()
        what = f"workers are {workers.or_else(Architecture.AMD64)} and masters {masters.or_else(Architecture.AMD64)}"
        problems.error(place, what, "on platform none all machines have the same architecture")


def _check_services(config: SiteConfig, distribution: Distribution, problems: Problems) -> None:
    helper = config.helper.address.value
    nat = config.network.nat.or_else(defaults.nat_of(distribution))
    seen: set[object] = set()
    for server in config.upstream_dns.or_else([]):
        if not server:
            continue
        address = server.got()
        if address == helper or address.is_loopback or address.is_unspecified or address.is_multicast:
            problems.error(
                server.where(), f"the helper would ask {address} and never get an answer", "name a DNS server outside"
            )
        elif address in seen:
            problems.error(server.where(), f"{address} is in the list twice", "keep one of them")
        elif not nat and not config.network.nat.bad and _outside(address, config):
            problems.warn(
                server.where(),
                f"the helper cannot reach {address}: the lab has no way out",
                "set network.nat to true, or leave upstreamDNS out",
            )
        seen.add(address)
    paths: set[str] = set()
    for share in config.shares:
        if share.path and share.path.got() in paths:
            problems.error(share.path.where(), f"{share.path.got()} is shared twice", "keep one of them")
        paths.add(share.path.or_else(""))


def _outside(address: object, config: SiteConfig) -> bool:
    """Only a lab of namespaces is closed: real machines have the gateway of their network."""
    closed = all(
        provider.or_else(Provider.NSPAWN) is Provider.NSPAWN
        for provider in (config.provider, *(machine.provider for machine in config.machines.or_else([])))
    )
    cidr = config.network.cidr.or_else(defaults.LAB_CIDR)
    return closed and not (isinstance(address, IPv4Address) and address in cidr)


def _ssh_keys(install: InstallConfig, distribution: Distribution, problems: Problems) -> tuple[str, ...]:
    key = install.ssh_key
    if not key or not key.got().strip():
        return ()
    try:
        return forms.ssh_keys(key.got())
    except FormError as wrong:
        if distribution is Distribution.KUBERNETES and forms.looks_like_a_placeholder(key.got()):
            problems.warn(key.where(), "sshKey is a placeholder: nobody can log in to the machines by SSH", wrong.right)
        else:
            problems.error(key.where(), wrong.what, wrong.right)
    return ()


def _pull_secret(install: InstallConfig, distribution: Distribution, problems: Problems) -> str | None:
    secret = install.pull_secret
    needed = distribution is Distribution.OPENSHIFT
    if secret.bad:
        return None
    if secret.absent:
        if needed:
            problems.error(install.place, "pullSecret is missing", "distribution openshift needs yours: add pullSecret")
        return None
    try:
        return forms.pull_secret(secret.got())
    except FormError as wrong:
        if needed:
            problems.error(secret.where(), wrong.what, wrong.right)
        elif secret.got().strip():
            problems.warn(
                secret.where(), f"{wrong.what} and is not used", "distribution kubernetes needs none: leave it out"
            )
    return None


def _check_fips(install: InstallConfig, distribution: Distribution, problems: Problems) -> None:
    if not install.fips.value:
        return
    if distribution is Distribution.KUBERNETES:
        problems.error(install.fips.where(), "distribution kubernetes has no FIPS mode", "write fips: false")
    else:
        problems.warn(
            install.fips.where(),
            "fips: true works only where openshift-install itself runs on a host in FIPS mode",
            "make sure it does",
        )


def _check_routes(
    site: Site, lab: Read[IPv4Network], install: InstallConfig, routes: HostRoutes, problems: Problems
) -> None:
    providers = {site.helper.provider, *(machine.provider for machine in site.machines)}
    services = install.service_networks.or_else([])
    clusters = install.cluster_networks.or_else([])
    others = [
        Used("serviceNetwork", network, services[index].place if services else None)
        for index, network in enumerate(site.networking.service_networks)
    ] + [
        Used("clusterNetwork", entry.cidr, clusters[index].place if clusters else None)
        for index, entry in enumerate(site.networking.cluster_networks)
    ]
    check_host_routes(
        Used("the lab network", site.lab.cidr, lab.place),
        site.lab.name,
        others,
        shared_lan=Provider.MANUAL in providers,
        reaches_out=site.lab.nat or providers != {Provider.NSPAWN},
        routes=routes,
        problems=problems,
    )


def _build(install: InstallConfig, config: SiteConfig, cidr: IPv4Network, counts: Counts) -> Site:
    """Everything is checked: only defaults are missing."""
    distribution = config.distribution.or_else(Distribution.KUBERNETES)
    cluster_name = install.name.or_else(defaults.CLUSTER_NAME)
    base_domain = install.base_domain.or_else(defaults.BASE_DOMAIN)
    network = config.network
    gateway = network.gateway.or_else(defaults.gateway_of(cidr))
    listed = config.machines.or_else([])
    entries = listed or [
        MachineEntry(Place(FILE), name=Read(name), role=Read(role))
        for name, role in defaults.machine_names(counts.masters, counts.workers)
    ]
    roles = list(Role)
    entries = sorted(entries, key=lambda entry: roles.index(entry.role.got()))
    everyone = [config.helper, *entries]
    addresses = defaults.Addresses(
        cidr,
        [
            gateway,
            *(read.got() for read in (network.api_vip, network.ingress_vip) if read),
            *(entry.address.got() for entry in everyone if entry.address),
        ],
    )
    macs = defaults.Macs(entry.mac.got() for entry in everyone if entry.mac)
    provider = config.provider.or_else(defaults.provider_of(distribution))

    def machine(entry: MachineEntry) -> Machine:
        role, name = entry.role.got(), entry.name.got()
        size = _size(entry.size, _size(config.sizes.get(role, SizeEntry()), defaults.SIZES[distribution][role]))
        return Machine(
            name=name,
            role=role,
            mac=entry.mac.value or macs.give(f"{name}.{cluster_name}.{base_domain}"),
            address=entry.address.value or addresses.give(role),
            provider=entry.provider.or_else(provider),
            cpus=size.cpus,
            memory_mib=size.memory_mib,
            disk_gib=size.disk_gib,
        )

    helper = _helper(config, f"{cluster_name}.{base_domain}", provider, addresses, macs)
    machines = tuple(machine(entry) for entry in entries)
    return Site(
        cluster_name=cluster_name,
        base_domain=base_domain,
        distribution=distribution,
        networking=_networking(install, cidr),
        lab=LabNetwork(
            name=network.name.or_else(defaults.bridge_name(cluster_name)),
            cidr=cidr,
            gateway=gateway,
            nat=network.nat.or_else(defaults.nat_of(distribution)),
        ),
        helper=helper,
        machines=machines,
        api_vip=network.api_vip.or_else(helper.address),
        ingress_vip=network.ingress_vip.or_else(helper.address),
        control_plane_replicas=counts.masters,
        compute_replicas=install.compute.replicas.or_else(counts.workers),
        architecture=install.control_plane.architecture.or_else(Architecture.AMD64),
        hyperthreading=(
            install.control_plane.hyperthreading.value != "Disabled",
            install.compute.hyperthreading.value != "Disabled",
        ),
        upstream_dns=tuple(server.got() for server in config.upstream_dns.or_else([])),
        nfs_shares=tuple(
            NfsShare(
                path=share.path.got(),
                clients=share.clients.or_else(cidr),
                read_only=share.read_only.or_else(False),
                root_squash=share.root_squash.or_else(False),
            )
            for share in config.shares
        ),
        timeouts=Timeouts(**{name: read.got() for name, read in config.timeouts.items() if read}),
        key_algorithm=config.key_algorithm.or_else(KeyAlgorithm.ECDSA),
        fips=install.fips.or_else(False),
        additional_trust_bundle=install.trust_bundle.value,
        additional_trust_bundle_policy=install.trust_bundle_policy.or_else("Proxyonly"),
        passed_on=install.passed_on,
    )


def _helper(
    config: SiteConfig, domain: str, machines: Provider, addresses: defaults.Addresses, macs: defaults.Macs
) -> Helper:
    entry = config.helper
    name = entry.name.or_else(defaults.HELPER_NAME)
    size = _size(entry.size, defaults.HELPER_SIZE)
    return Helper(
        name=name,
        mac=entry.mac.value or macs.give(f"{name}.{domain}"),
        address=entry.address.value or addresses.give(None),
        provider=entry.provider.or_else(defaults.helper_provider(machines)),
        cpus=size.cpus,
        memory_mib=size.memory_mib,
        disk_gib=size.disk_gib,
    )


def _size(entry: SizeEntry, default: Size) -> Size:
    return Size(
        cpus=entry.cpus.or_else(default.cpus),
        memory_mib=entry.memory_mib.or_else(default.memory_mib),
        disk_gib=entry.disk_gib.or_else(default.disk_gib),
    )


def _networking(install: InstallConfig, cidr: IPv4Network) -> Networking:
    default: tuple[IPNetwork, ...] = (cidr,)
    clusters = install.cluster_networks.or_else([])
    return Networking(
        machine_networks=tuple(each.got() for each in install.machine_networks.or_else([])) or default,
        cluster_networks=tuple(ClusterNetwork(entry.cidr.got(), entry.host_prefix.or_else(0)) for entry in clusters)
        or (defaults.CLUSTER_NETWORK,),
        service_networks=tuple(each.got() for each in install.service_networks.or_else([]))
        or (defaults.SERVICE_NETWORK,),
        network_type=install.network_type.or_else(defaults.NETWORK_TYPE),
    )
