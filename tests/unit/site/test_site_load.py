"""From files to a Site: defaults, what the two files say together, the host's routes, the example."""

from __future__ import annotations

import dataclasses
import re
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml
from site_files import INSTALL, OPENSHIFT_SITE, PULL_SECRET, SITE, SSH_KEY, examined, no_routes, routes

from falsework.errors import UsageError
from falsework.site.host_routes import Route, read_host_routes
from falsework.site.install_config import OTHER_PLATFORMS, install_config_document
from falsework.site.load import default_site, examine, examine_text, load_site
from falsework.site.model import Distribution, KeyAlgorithm, NfsShare, Provider, Role, Site, Timeouts
from falsework.site.problems import SiteError
from falsework.site.reading import Fields

ALCHEMY = Path(__file__).parents[3] / "examples" / "alchemy"
REFERENCE = Path(__file__).parents[3] / "docs" / "site-file.md"
AS_PRINTED = """\
apiVersion: v1
baseDomain: alchemy.com
compute:
- hyperthreading: Enabled
  name: worker
  replicas: 0
controlPlane:
  hyperthreading: Enabled
  name: master
  replicas: 3
metadata:
  name: ocp4
networking:
  clusterNetworks:
  - cidr: 10.128.0.0/14
    hostPrefix: 23
  networkType: OVNKubernetes
  serviceNetwork:
  - 172.30.0.0/16
platform:
  none: {}
fips: false
pullSecret: 'paste-as-obtained-from-https://cloud.redhat.com'
sshKey: 'PASTE-SSH-PUBLIC-KEY'
"""


def _site(install: str | None = INSTALL, site: str | None = SITE) -> Site:
    found = examined(install, site)
    assert found.site is not None, [str(error) for error in found.errors]
    return found.site


def test_without_any_file_there_is_a_complete_site(tmp_path: Path) -> None:
    site = load_site(tmp_path, routes=no_routes)
    assert site == default_site()
    assert site.domain == "lab.falsework.test"
    assert (site.api_host, site.api_int_host, site.apps_domain) == (
        "api.lab.falsework.test",
        "api-int.lab.falsework.test",
        "apps.lab.falsework.test",
    )
    assert [(machine.name, str(machine.address)) for machine in site.machines] == [
        ("bootstrap", "192.168.126.100"),
        ("master-0", "192.168.126.101"),
        ("master-1", "192.168.126.102"),
        ("master-2", "192.168.126.103"),
        ("worker-0", "192.168.126.111"),
        ("worker-1", "192.168.126.112"),
    ]
    assert {machine.provider for machine in site.machines} == {Provider.NSPAWN}
    assert (str(site.lab.gateway), str(site.helper.address)) == ("192.168.126.1", "192.168.126.2")
    assert site.api_vip == site.ingress_vip == site.helper.address
    assert site.fqdn(site.masters[0]) == "master-0.lab.falsework.test"
    assert site.machine("master-0.lab.falsework.test") is site.machine("master-0") is site.masters[0]
    assert site.distribution is Distribution.KUBERNETES
    assert (str(site.networking.api_service_address), str(site.networking.dns_service_address)) == (
        "172.30.0.1",
        "172.30.0.10",
    )


def test_made_up_macs_are_the_same_on_every_run_and_no_two_alike() -> None:
    wide = "network: {cidr: 10.0.0.0/16}\n"
    install = INSTALL.replace("10.1.0.0/24", "10.0.0.0/16").replace("replicas: 2", "replicas: 1500")
    install = install.replace("10.128.0.0/14", "11.0.0.0/8")
    site = _site(install, wide)
    assert len({machine.mac for machine in site.machines} | {site.helper.mac}) == 1505
    assert len({machine.address for machine in site.machines}) == 1504
    assert all(machine.mac.startswith("52:54:00:") for machine in site.machines)
    assert site == _site(install, wide)
    assert default_site().machine("master-0").mac == "52:54:00:6d:cd:8a"


def test_everything_the_files_say_is_in_the_site() -> None:
    site = _site()
    assert (site.cluster_name, site.base_domain) == ("demo", "example.com")
    assert site.key_algorithm is KeyAlgorithm.RSA
    assert (site.lab.name, site.lab.cidr, site.lab.nat) == ("demo", IPv4Network("10.1.0.0/24"), True)
    assert (str(site.api_vip), str(site.ingress_vip)) == ("10.1.0.5", "10.1.0.6")
    assert (site.helper.name, site.helper.mac, site.helper.memory_mib) == ("bastion", "52:54:00:00:00:02", 4096)
    worker = site.machine("worker-a")
    assert (worker.mac, worker.cpus, worker.memory_mib, worker.disk_gib) == ("52:54:00:00:00:21", 6, 8192, 60)
    other = site.machine("worker-b")
    assert (other.provider, str(other.address), other.cpus) == (Provider.LIBVIRT, "10.1.0.111", 4)
    assert [str(server) for server in site.upstream_dns] == ["192.0.2.53", "2001:db8::53"]
    assert site.nfs_shares == (NfsShare("/var/nfs/registry", IPv4Network("10.1.0.0/25"), read_only=True),)
    assert site.timeouts == Timeouts(boot=90, operators=3600)
    assert (site.ssh_keys, site.pull_secret) == ((SSH_KEY,), PULL_SECRET)
    assert PULL_SECRET not in repr(site)


def test_machines_come_in_the_order_of_their_roles() -> None:
    site = _site(None, "machines: [{name: w, role: worker}, {name: m, role: master}, {name: b, role: bootstrap}]\n")
    assert [machine.role for machine in site.machines] == [Role.BOOTSTRAP, Role.MASTER, Role.WORKER]
    assert (site.control_plane_replicas, site.compute_replicas) == (1, 1)


def test_workers_may_be_listed_where_install_config_has_none() -> None:
    site = _site(INSTALL.replace("replicas: 2", "replicas: 0"))
    assert (site.compute_replicas, len(site.workers)) == (0, 2)


def test_an_install_config_without_numbers_has_openshifts() -> None:
    install = INSTALL.replace("  replicas: 3\n", "").replace("  replicas: 2\n", "")
    site = _site(install, None)
    assert (len(site.masters), len(site.workers)) == (3, 3)


def test_without_a_network_of_its_own_the_lab_is_on_the_machine_network() -> None:
    site = _site(INSTALL, None)
    assert str(site.lab.cidr) == "10.1.0.0/24"
    assert str(site.bootstrap.address) == "10.1.0.100"


def test_in_a_small_network_the_machines_stand_close_together() -> None:
    site = _site(None, "network: {cidr: 10.1.0.16/28, gateway: 10.1.0.30}\nhelper: {address: 10.1.0.20}\n")
    assert [str(machine.address) for machine in site.machines] == [
        f"10.1.0.{host}" for host in (18, 19, 21, 22, 23, 24)
    ]


def test_deprecated_names_mean_the_same() -> None:
    old = (
        INSTALL.replace("apiVersion: v1", "apiVersion: v1beta3")
        .replace("networkType:", "type:")
        .replace("  machineNetwork:\n  - cidr:", "  machineCIDR:")
        .replace("clusterNetwork:", "clusterNetworks:")
        .replace("hostPrefix: 23", "hostSubnetLength: 9")
        .replace("  serviceNetwork:\n  -", "  serviceCIDR:")
    )
    assert _site(old) == _site()


def test_a_trailing_dot_of_the_base_domain_is_tolerated() -> None:
    assert _site(INSTALL.replace("example.com\nmeta", "example.com.\nmeta")).base_domain == "example.com"


def test_openshift_may_have_both_ip_versions() -> None:
    install = (
        INSTALL.replace("  - cidr: 10.1.0.0/24", "  - cidr: 10.1.0.0/24\n  - cidr: fd00::/64")
        .replace("    hostPrefix: 23", "    hostPrefix: 23\n  - cidr: fd01::/48\n    hostPrefix: 64")
        .replace("  - 172.30.0.0/16", "  - 172.30.0.0/16\n  - fd02::/112")
    )
    site = _site(install, OPENSHIFT_SITE)
    assert [entry.host_prefix for entry in site.networking.cluster_networks] == [23, 64]
    found = examined(install, SITE)
    assert [error.line for error in found.errors] == [19, 23, 27]


def test_settings_for_openshift_alone_are_passed_on() -> None:
    install = INSTALL.replace(
        "publish: External",
        "proxy: {httpProxy: 'http://proxy:3128'}\n"
        "capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress]}\n"
        "imageDigestSources:\n- mirrors: [mirror.example/a]\n  source: quay.example/a",
    )
    document = install_config_document(_site(install))
    assert document["proxy"] == {"httpProxy": "http://proxy:3128"}
    assert document["capabilities"]["additionalEnabledCapabilities"] == ["Ingress"]
    assert document["imageDigestSources"] == [{"mirrors": ["mirror.example/a"], "source": "quay.example/a"}]


def test_the_clusters_copy_of_the_install_config_has_no_pull_secret() -> None:
    site = _site()
    document = install_config_document(site)
    assert document["pullSecret"] == ""
    assert document["networking"]["clusterNetwork"] == [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]
    assert list(document) == sorted(document)
    assert install_config_document(site, with_pull_secret=True)["pullSecret"] == PULL_SECRET


def test_the_completed_install_config_is_a_good_install_config() -> None:
    site = _site()
    again = yaml.safe_dump(install_config_document(site, with_pull_secret=True))
    assert _site(again) == site


def test_an_install_config_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "install-config.yaml").write_text("a: [\n")
    (tmp_path / "site.yaml").write_text(OPENSHIFT_SITE)
    with pytest.raises(SiteError) as caught:
        load_site(tmp_path)
    assert isinstance(caught.value, UsageError)
    assert [problem.file for problem in caught.value.problems] == [str(tmp_path / "install-config.yaml")]
    assert str(caught.value).startswith("the site's files have 1 problem; nothing was touched\n")


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="is not a folder"):
        load_site(tmp_path / "nowhere")


# The example


def test_the_example_is_the_lab_of_the_course() -> None:
    found = examine(ALCHEMY, routes=no_routes)
    assert [problem.what for problem in found.problems] == [
        "pullSecret is not JSON and is not used",
        "sshKey is a placeholder: nobody can log in to the machines by SSH",
    ]
    site = found.site
    assert site is not None
    assert site.domain == "ocp4.alchemy.com"
    assert site.helper.address == IPv4Address("192.168.100.254")
    assert [(machine.name, str(machine.address), machine.mac[9:]) for machine in site.machines] == [
        ("bootstrap", "192.168.100.10", "a4:db:5f"),
        ("master01", "192.168.100.11", "8b:a1:17"),
        ("master02", "192.168.100.12", "ea:8b:9d"),
        ("master03", "192.168.100.13", "f8:87:c7"),
        ("worker01", "192.168.100.21", "31:4a:39"),
        ("worker02", "192.168.100.22", "6a:37:32"),
        ("worker03", "192.168.100.23", "95:d4:ed"),
    ]
    assert site.compute_replicas == 0
    assert (site.pull_secret, site.ssh_keys) == (None, ())


def test_the_courses_install_config_loads_as_printed() -> None:
    site = (ALCHEMY / "site.yaml").read_text()
    assert _site(AS_PRINTED, site) == load_site(ALCHEMY, routes=no_routes)
    openshift = site.replace("distribution: kubernetes", "distribution: openshift")
    found = examined(AS_PRINTED, openshift)
    assert [(error.line, error.what) for error in found.errors] == [
        (23, "pullSecret is not JSON"),
        (24, "sshKey is not a public SSH key"),
    ]


# The host's routes


def _told(site: str, *host: str, interface: str = "eth0") -> list[tuple[str, str]]:
    found = examine_text(None, site.encode(), routes=lambda: routes(*host, interface=interface))
    return [(str(problem.severity), str(problem.place)) for problem in found.problems]


def test_a_closed_lab_may_overlap_the_hosts_networks_with_a_warning() -> None:
    assert _told("network: {cidr: 10.1.0.0/24}\n", "10.0.0.0/8") == [("warning", "site.yaml:1:17")]
    assert _told("provider: nspawn\n", "192.168.0.0/16") == [("warning", "site.yaml")]


@pytest.mark.parametrize(
    "reason", ["network: {cidr: 10.1.0.0/24, nat: true}", "network: {cidr: 10.1.0.0/24}\nprovider: libvirt"]
)
def test_a_lab_that_meets_the_host_must_not_overlap_its_networks(reason: str) -> None:
    assert _told(reason, "10.1.0.0/16") == [("error", "site.yaml:1:17")]


def test_pod_and_service_networks_that_the_host_uses_cost_a_warning() -> None:
    assert _told("network: {nat: true}\n", "10.0.0.0/8", "172.16.0.0/12") == [("warning", "install-config.yaml")] * 2


def test_the_labs_own_bridge_is_no_overlap() -> None:
    site = "provider: libvirt\nnetwork: {name: mine, cidr: 10.1.0.0/24}\n"
    assert _told(site, "10.1.0.0/24", interface="mine") == []
    assert _told(site, "10.1.0.0/24", interface="eth0") != []


def test_real_machines_share_their_network_with_the_host() -> None:
    site = SITE.replace("provider: nspawn", "provider: manual").replace(
        "  provider: libvirt", "  mac: 52:54:00:00:00:22"
    )
    assert _told(site, "10.1.0.0/24") == []
    assert _told(site, "10.1.0.0/16") == [("error", "site.yaml:6:9")]


def test_routes_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    table = tmp_path / "route"
    head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    table.write_text(
        head
        + "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        + "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        + "broken line\n"
    )
    assert read_host_routes(table) == (Route("eth0", IPv4Network("192.0.2.0/24")),)
    assert read_host_routes(tmp_path / "nowhere") == ()


def test_every_key_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is known to the reader if and only if the reference has it (the one way round can be tested)."""
    keys: set[str] = set()
    refuse_unknown = Fields.refuse_unknown

    def recording(fields: Fields, elsewhere: dict[str, str] | None = None) -> None:
        keys.update(fields.known)
        refuse_unknown(fields, elsewhere)

    monkeypatch.setattr(Fields, "refuse_unknown", recording)
    proxy = "proxy: {httpProxy: 'http://p'}\ncapabilities: {baselineCapabilitySet: vCurrent}\npublish:"
    _site(INSTALL.replace("publish:", proxy))
    reference = REFERENCE.read_text()
    platforms = {"none", *OTHER_PLATFORMS}
    assert len(keys) > 70
    assert [key for key in sorted(keys - platforms) if not re.search(rf"[`.{{, ]{key}[`}},:.]", reference)] == []


def test_a_site_is_a_value() -> None:
    site = default_site()
    assert hash(site) == hash(default_site())
    assert dataclasses.replace(site, cluster_name="other").domain == "other.falsework.test"
