"""Guide 000, up to the cluster: the host, the helper, and what is made before the first machine boots."""

from __future__ import annotations

from collections.abc import Iterator

from falsework import __version__
from falsework.assets.keys_in_folder import ADMIN_PASSWORD
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed
from falsework.checks.verify.said import has, has_at_least, short
from falsework.helper.boot import TFTP_ROOT, boot_files, config_path, dashed_mac
from falsework.helper.boot_server_files import UNIT as BOOT_SERVER
from falsework.helper.bootserver import CONFIG_FOLDER
from falsework.lab.folder import NETWORK
from falsework.machines.provider import Power
from falsework.site.model import Provider
from falsework.site.records import ETCD_SERVICE, everyone

FILE = "000_9cff367b7cf2a6f5.txt"
_KVM = "Installing KVM on Oracle Linux v9.4"
_NETWORK = "Create a file virt-net.xml"
_SIGNED_IN = "After signing into Fedora 41 VM"
_FEDORA = "On Fedora 39 VM"
_BOOTSTRAP_VM = "Create the bootstrap VM"
_WORKERS = "Create Worker Nodes"
_NSPAWN = "the lab's machines are systemd-nspawn machines: no libvirt has them"
_ONE_FOR_ALL = "dnsmasq is dhcpd, named and tftp in one"
_OWN_WEB_SERVER = "the boot server is httpd here"
_RUNNING = "active (running)"


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    yield from _host(guide)
    yield from _services(guide)
    yield from _names(guide)
    yield from _boot(guide)
    yield from _assets(guide)


def _host(guide: Guide) -> Iterator[Check]:
    site, lab = guide.facts.site, guide.facts.lab
    yield guide.not_here(Command("kvm/libvirtd", _KVM, "sudo systemctl status libvirtd"), _NSPAWN, place=Place.HOST)
    for name, section, command in (
        ("kvm/machines", _KVM, "virsh list --all"),
        ("kvm/list", "On Oracle Linux v9.4", "sudo virsh list"),
    ):
        yield guide.looked(
            Command(name, section, command, "every machine runs", as_run="falsework machine list", because=_NSPAWN),
            lambda: _machines(guide.facts),
            place=Place.HOST,
        )
    yield guide.on_host(
        Command(
            "kvm/network",
            _NETWORK,
            "sudo virsh net-list",
            "the lab's bridge is up",
            as_run=f"ip -n {lab.netns(NETWORK)} link show {site.lab.name}",
            because="the bridge is in a network namespace of the lab's own",
        ),
        has(site.lab.name, "state UP"),
    )
    yield guide.on_helper(Command("kvm/links", _SIGNED_IN, "ip link show", "a link is up"), has("state UP"))
    yield guide.not_here(
        Command("kvm/outside", _SIGNED_IN, "ping -c 2 8.8.8.8"),
        "verify asks nobody outside the lab, and a lab need not have a way out",
        place=Place.HELPER,
    )
    yield guide.not_here(
        Command("kvm/autostart", _WORKERS, "virsh list --autostart"),
        "machines of a lab do not start with the host; `falsework up` starts them again",
        place=Place.HOST,
    )


def _machines(facts: Facts) -> Verdict:
    states = {machine.name: facts.provider.state(machine.name).power for machine in everyone(facts.standing)}
    off = [f"{name} is {power}" for name, power in states.items() if power is not Power.RUNNING]
    return failed("; ".join(off)) if off else passed(f"running: {', '.join(states)}")


def _services(guide: Guide) -> Iterator[Check]:
    running = "the service runs"

    def status(name: str, command: str, as_run: str, because: str, count: int = 1) -> Check:
        judge = has_at_least(count, r"active \(running\)") if count > 1 else has(_RUNNING)
        return guide.on_helper(
            Command(f"helper/{name}", _FEDORA, command, running, as_run=f"{as_run} --no-pager", because=because), judge
        )

    yield status("dhcpd", "systemctl status dhcpd", "systemctl status dnsmasq", _ONE_FOR_ALL)
    yield status("named", "systemctl status named", "systemctl status dnsmasq", _ONE_FOR_ALL)
    yield status(
        "services",
        "sudo systemctl status haproxy.service dhcpd httpd tftp named",
        f"systemctl status haproxy.service dnsmasq {BOOT_SERVER}",
        f"{_ONE_FOR_ALL}; {_OWN_WEB_SERVER}",
        3,
    )
    yield status("haproxy", "systemctl status haproxy", "systemctl status haproxy", "without a pager")
    for name, command in (("journal-tftp", "journalctl -f -u tftp"), ("journal-dhcpd", "journalctl -f -u dhcpd")):
        yield guide.on_helper(
            Command(
                f"helper/{name}",
                _BOOTSTRAP_VM,
                command,
                "its journal can be read",
                as_run="journalctl -u dnsmasq --no-pager -n 1",
                because=f"{_ONE_FOR_ALL}; its last line, without following it",
            ),
            has("dnsmasq"),
        )


def _names(guide: Guide) -> Iterator[Check]:
    site, standing = guide.facts.site, guide.facts.standing
    yield guide.on_helper(
        Command(
            "helper/dhcpd-conf",
            _FEDORA,
            "cat /etc/dhcp/dhcpd.conf",
            "every machine's MAC has its address",
            as_run="cat /etc/dnsmasq.conf /etc/falsework/machines/dhcp-hosts/site",
            because=_ONE_FOR_ALL,
        ),
        has("dhcp-range", *(f"{machine.mac}," for machine in standing.machines)),
    )
    yield guide.on_helper(
        Command(
            "helper/etcd-srv",
            _FEDORA,
            "dig @127.0.0.1 -t srv _etcd-server-ssl._tcp.ocp4.alchemy.com",
            "an SRV record for each master: 0 10 2380",
            as_run=f"dig @127.0.0.1 -t srv {ETCD_SERVICE}.{site.domain}",
            because="this cluster's domain",
        ),
        has_at_least(len(site.masters), r"\sSRV\s+0 10 2380 etcd-"),
    )
    machine = standing.machines[0]
    yield guide.on_helper(
        Command(
            "helper/host",
            _FEDORA,
            "host bootstrap.ocp4.alchemy.com",
            "the machine's address",
            as_run=f"host {site.fqdn(machine)}",
            because="this cluster's domain" + ("" if guide.facts.bootstrap else "; the bootstrap's name went with it"),
        ),
        has(f"has address {machine.address}"),
    )
    yield guide.on_helper(
        Command(
            "helper/firewall",
            _FEDORA,
            "firewall-cmd --list-all",
            "the API, the Machine Config Server and the routers' ports are open",
            as_run="nft list ruleset",
            because="nftables without firewalld",
        ),
        has("6443", "22623", "443"),
    )


def _boot(guide: Guide) -> Iterator[Check]:
    site, standing = guide.facts.site, guide.facts.standing
    yield guide.on_helper(
        Command(
            "helper/pxelinux",
            _FEDORA,
            "ls -1 /var/lib/tftpboot/pxelinux.cfg",
            "01-MAC of every machine",
            as_run=f"ls -1 {TFTP_ROOT}/pxelinux.cfg",
        ),
        has(*(f"01-{dashed_mac(machine)}" for machine in standing.machines)),
    )
    yield _kernel(guide)
    yield guide.on_helper(
        Command(
            "helper/ignition",
            _FEDORA,
            "ls /var/www/html/ignition/",
            "an Ignition config for every machine",
            as_run=f"find {CONFIG_FOLDER} -name '*.ign'",
            because="each machine has a config of its own, with its own credential; only the boot server can read them",
        ),
        has(*sorted({f"{CONFIG_FOLDER}/{config_path(site, machine)}" for machine in standing.machines})),
    )


def _kernel(guide: Guide) -> Check:
    name, command = "helper/boot-files", "ls /var/lib/tftpboot/rhcos"
    standing = guide.facts.standing
    if all(machine.provider is Provider.NSPAWN for machine in standing.machines):
        reason = "namespace machines run on the host's kernel: none is served to them"
        return guide.not_here(Command(name, _FEDORA, command), reason, place=Place.HELPER)
    folder = boot_files(standing).kernel.partition("/")[0]
    return guide.on_helper(
        Command(
            name,
            _FEDORA,
            command,
            "kernel, initramfs.img",
            as_run=f"ls {TFTP_ROOT}/{folder}/",
            because="the folder of this distribution's boot files",
        ),
        has("kernel", "initramfs.img"),
    )


def _assets(guide: Guide) -> Iterator[Check]:
    site_folder = "this site's folder"
    yield guide.looked(
        Command(
            "tools/installer",
            _FEDORA,
            "openshift-install version",
            "a version",
            as_run="falsework --version",
            because="falsework is the installer",
        ),
        lambda: passed(f"falsework {__version__}"),
        place=Place.HOST,
    )
    for program in ("oc", "kubectl"):
        yield guide.in_shell(
            Command(f"tools/{program}", _FEDORA, f"{program} version --client", "a version"), has("Client Version")
        )
        yield guide.in_shell(
            Command(
                f"tools/{program}-completion",
                _WORKERS,
                f"source <({program} completion bash)",
                "bash can read it",
                as_run=f"source <({program} completion bash); complete -p kubectl",
                because="and what bash then has",
            ),
            has("__start_kubectl"),
        )
    yield guide.on_host(
        Command(
            "assets/manifests",
            _FEDORA,
            "openshift-install create manifests; ls",
            "manifests and openshift are there",
            as_run="ls manifests openshift",
            because=f"they are made already, in {site_folder}",
        ),
        has("cluster-config.yaml", "cluster-scheduler-02-config.yml", "99_kubeadmin-password-secret.yaml"),
    )
    yield guide.on_host(
        Command(
            "assets/scheduler",
            _FEDORA,
            "sed -i 's/true/false/' manifests/cluster-scheduler-02-config.yml",
            "the setting is there to be changed",
            as_run="grep mastersSchedulable manifests/cluster-scheduler-02-config.yml",
            because="a check changes nothing",
        ),
        has("mastersSchedulable:"),
    )
    yield guide.on_host(
        Command(
            "assets/ignition",
            _FEDORA,
            "openshift-install create ignition-configs; ls",
            "bootstrap.ign, master.ign, worker.ign, auth, metadata.json",
            as_run="ls . auth",
            because=f"they are made already, in {site_folder}",
        ),
        has("bootstrap.ign", "master.ign", "worker.ign", "kubeconfig", "kubeadmin-password", "metadata.json"),
    )
    yield guide.looked(
        Command(
            "assets/password",
            "Test",
            "cat ocp4/auth/kubeadmin-password",
            "23 characters in four groups",
            as_run="test -s auth/kubeadmin-password",
            because="its form and its mode are looked at, it is not shown",
        ),
        lambda: _password(guide.facts),
        place=Place.HOST,
    )


def _password(facts: Facts) -> Verdict:
    path = facts.lab.site_folder / ADMIN_PASSWORD
    try:
        groups, mode = path.read_text().strip().split("-"), path.stat().st_mode & 0o777
    except OSError as error:
        return failed(short(str(error)))
    if [len(group) for group in groups] != [5, 5, 5, 5] or mode & 0o077:
        return failed(f"{len(groups)} groups, mode {mode:o}")
    return passed(f"{path}, mode {mode:o}")
