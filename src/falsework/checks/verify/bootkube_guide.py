"""Guide 002: bootkube, the static pods and the two ports that the bootstrap serves, and the masters after it."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed
from falsework.checks.verify.said import has
from falsework.site import ports

FILE = "002_3f78c745753fd71b.txt"
_OBSERVE = "Hands-on: observe bootstrap on a real node"
_CHECKS = "Verification checks"
_BOOTSTRAP_PODS = (
    "bootstrap-pod.yaml",
    "etcd-member-pod.yaml",
    "kube-apiserver-pod.yaml",
    "kube-controller-manager-pod.yaml",
    "kube-scheduler-pod.yaml",
)
MASTER_PODS = (
    "etcd-pod.yaml",
    "kube-apiserver-pod.yaml",
    "kube-controller-manager-pod.yaml",
    "kube-scheduler-pod.yaml",
)
_MANIFESTS = "ls /etc/kubernetes/manifests"


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    yield guide.on_bootstrap(
        Command(
            "observe/bootkube",
            _OBSERVE,
            "systemctl status bootkube.service",
            "the unit is at work, or has ended well",
            as_run="systemctl status bootkube.service --no-pager || test $? -eq 3",
            because="exit code 3 says that it has finished",
        ),
        has("bootkube.service"),
    )
    yield guide.on_bootstrap(
        Command(
            "observe/bootkube-journal",
            _OBSERVE,
            "journalctl -b -u bootkube.service",
            "it tells its stages",
            as_run="journalctl -b -u bootkube.service --no-pager",
            because="without a pager",
        ),
        has("Starting cluster-bootstrap..."),
    )
    yield manifests_on_bootstrap(guide, "observe/manifests", _OBSERVE)
    listening = "ss -ltnp | egrep '6443|22623'"
    yield guide.on_bootstrap(
        Command("observe/ports", _OBSERVE, listening, "both ports are open"),
        has(":6443", ":22623"),
        afterwards=listening,
    )
    for machine in facts.site.masters:
        yield guide.on_master(
            Command(
                f"observe/kubelet/{machine.name}",
                _OBSERVE,
                "journalctl -b -u kubelet",
                "the kubelet's journal can be read",
                as_run="journalctl -b -u kubelet --no-pager -n 20",
                because="its last lines, without a pager",
            ),
            has("kubelet"),
            machine=machine,
        )
        yield guide.on_master(
            Command(f"observe/manifests/{machine.name}", _OBSERVE, _MANIFESTS, ", ".join(MASTER_PODS)),
            has(*MASTER_PODS),
            machine=machine,
        )
    yield guide.looked(
        Command(
            "checks/api",
            _CHECKS,
            f"The API VIP answers on port {ports.API} during bootstrap.",
            "a connection, and ok",
            as_run=f"https://{facts.site.api_vip}:{ports.API}/healthz, with the API's own authority",
            because="the check is a sentence",
        ),
        lambda: _answers(facts, "/healthz"),
        place=Place.SHELL,
    )
    yield guide.looked(
        Command(
            "checks/config-server",
            _CHECKS,
            f"The Machine Config Server answers on port {ports.MACHINE_CONFIG_SERVER} during bootstrap.",
            "a connection, and status 200 for /healthz",
            as_run=f"https://{facts.site.api_int_host}:{ports.MACHINE_CONFIG_SERVER}/healthz, with the root authority",
            because="the check is a sentence",
        ),
        lambda: config_server_answers(facts),
        place=Place.SHELL,
    )


def manifests_on_bootstrap(guide: Guide, name: str, section: str) -> Check:
    return guide.on_bootstrap(
        Command(name, section, _MANIFESTS, ", ".join(_BOOTSTRAP_PODS)),
        has(*_BOOTSTRAP_PODS),
        afterwards=_MANIFESTS,
        judge_afterwards=has(*MASTER_PODS),
    )


def _answers(facts: Facts, path: str) -> Verdict:
    site, authority = facts.site, facts.lab.site_folder / "tls" / "kube-apiserver-lb-signer.crt"
    status = facts.asker.status(str(site.api_vip), ports.API, path, authority, site.api_host)
    return passed(f"{path}: 200") if status == 200 else failed(f"{path}: HTTP status {status}")


def config_server_answers(facts: Facts, path: str = "/healthz", wanted: int = 200) -> Verdict:
    site, authority = facts.site, facts.lab.site_folder / "tls" / "root-ca.crt"
    port = ports.MACHINE_CONFIG_SERVER
    status = facts.asker.status(str(site.api_vip), port, path, authority, site.api_int_host)
    return passed(f"{path}: {status}") if status == wanted else failed(f"{path}: HTTP status {status}, not {wanted}")
