"""Which checks there are: all that the guides print, each with what a reader needs to know of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_facts import facts_of

from falsework.checks.verify.catalogue import all_checks
from falsework.checks.verify.model import Check, Outcome, Place

PRINTED = {
    "000": (
        "virsh list --all",
        "virsh net-list",
        "virsh list --autostart",
        "systemctl status dhcpd",
        "systemctl status named",
        "systemctl status haproxy",
        "sudo systemctl status haproxy.service dhcpd httpd tftp named",
        "cat /etc/dhcp/dhcpd.conf",
        "ls -1 /var/lib/tftpboot/pxelinux.cfg",
        "ls /var/lib/tftpboot/rhcos",
        "ls /var/www/html/ignition/",
        "dig @127.0.0.1 -t srv _etcd-server-ssl._tcp.ocp4.alchemy.com",
        "host bootstrap.ocp4.alchemy.com",
        "openshift-install version",
        "openshift-install create manifests",
        "sed -i 's/true/false/' manifests/cluster-scheduler-02-config.yml",
        "openshift-install create ignition-configs",
        "journalctl -f -u tftp",
        "journalctl -f -u dhcpd",
        "oc version --client",
        "kubectl version --client",
        "oc completion bash",
        "kubectl completion bash",
        "oc whoami",
        "oc whoami --show-server",
        "oc get clusterversions.config.openshift.io",
        "oc get nodes",
        "oc get csr",
        "| xargs oc adm certificate approve",
        "oc get co",
        "oc get ingresscontroller default -n openshift-ingress-operator -o jsonpath='{.status.domain}'",
        "oc whoami --show-console",
        "cat ocp4/auth/kubeadmin-password",
        "oc edit schedulers.config.openshift.io cluster",
        "showmount -e localhost",
        "firewall-cmd --list-all",
        "oc import-image",
        "oc -n openshift-ingress get pod -o json",
        "oc -n openshift-console get pods -w",
        "oc get ingresses.config/cluster -o jsonpath={.spec.domain}",
        "oc apply -f storage.yml",
        "oc get po -n openshift-image-registry",
        "oc edit configs.imageregistry.operator.openshift.io -n openshift-image-registry",
        "oc get csr -o name | xargs oc adm certificate approve",
    ),
    "001": (
        "ssh core@${BOOTSTRAP_IP}",
        "sudo journalctl -u bootkube -f",
        "sudo journalctl -u kubelet -f",
        "sudo crictl pods",
        "curl -k https://api.${CLUSTER_DOMAIN}:6443/healthz",
        "curl -k https://localhost:6443/healthz",
        "oc get nodes",
        "oc get pods -A",
        "oc get co",
        "sudo crictl logs $(sudo crictl ps -q --name etcd)",
        "etcdctl endpoint health --cluster",
        "etcdctl endpoint health",
        "sudo crictl pods | grep -c Running",
        "oc --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig get ns",
    ),
    "002": (
        "systemctl status bootkube.service",
        "journalctl -b -u bootkube.service",
        "ls /etc/kubernetes/manifests",
        "ss -ltnp | egrep '6443|22623'",
        "journalctl -b -u kubelet",
        "The API VIP answers on port 6443 during bootstrap.",
        "The Machine Config Server answers on port 22623 during bootstrap.",
    ),
    "003": (
        "oc get csr",
        "oc get nodes",
        "etcdctl member list -w table",
        "etcdctl endpoint health --cluster",
        "oc logs -n openshift-etcd-operator deploy/etcd-operator -f",
        "sudo crictl pods",
        "curl -k https://api.${CLUSTER_DOMAIN}:6443/healthz",
        "curl -k https://${MASTER0_IP}:6443/healthz",
        "curl -k https://${MASTER2_IP}:6443/healthz",
        "oc get nodes -l node-role.kubernetes.io/master",
        "oc get pods -A --field-selector spec.nodeName=${node}.${CLUSTER_DOMAIN}",
        "oc get pods -n openshift-etcd -l app=etcd",
    ),
    "004": (
        "journalctl -b -u kubelet.service",
        "endpoint health",
        "ls /etc/kubernetes/manifests",
        "oc patch clusterversion.config.openshift.io version",
        "wait-for-ceo",
    ),
}


@pytest.fixture(params=[True, False], ids=["bootstrapping", "pivoted"])
def checks(request: pytest.FixtureRequest, tmp_path: Path) -> list[Check]:
    return all_checks(facts_of(tmp_path, has_bootstrap=request.param))


@pytest.mark.parametrize("guide", PRINTED)
def test_every_command_a_guide_prints_is_checked(checks: list[Check], guide: str) -> None:
    commands = [check.command for check in checks if check.id.startswith(f"{guide}/")]
    assert [printed for printed in PRINTED[guide] if not any(printed in command for command in commands)] == []


def test_each_has_an_id_of_its_own_and_all_that_is_to_be_told(checks: list[Check]) -> None:
    ids = [check.id for check in checks]
    assert len(ids) == len(set(ids))
    for check in checks:
        assert all((check.source.file, check.source.section, check.command, check.expected)), check.id
        assert check.source.file == "falsework" or check.id.startswith(check.source.file[:3]), check.id
        assert not check.as_run or check.because, f"{check.id} does not say why it differs"


def test_what_is_typed_only_looks(checks: list[Check]) -> None:
    changing = (" delete ", " approve", " edit ", " patch ", "sed -i", " create ")
    endless = (" -f", " -w")
    for check in checks:
        typed = check.as_run or check.command
        changes = [word for word in changing if word in typed] or typed.endswith(endless)
        assert not changes or _is_skipped(check), f"{check.id}: {typed}"


def _is_skipped(check: Check) -> bool:
    """Whatever a check would look at is not there; one that is skipped looks at nothing."""
    try:
        return check.look().outcome is Outcome.SKIP
    except (AttributeError, KeyError):
        return False


def test_a_bootstrap_that_has_made_way_is_not_asked(tmp_path: Path) -> None:
    checks = {check.id: check for check in all_checks(facts_of(tmp_path))}
    assert not [check.id for check in checks.values() if check.machine == "bootstrap"]
    assert checks["001/progress/bootkube"].look().outcome is Outcome.SKIP
    pods = checks["001/checklist/pods"]
    assert (pods.place, pods.machine) == (Place.MASTER, "master-0")
    assert "made way" in pods.because


def test_a_bootstrap_that_stands_is_asked(tmp_path: Path) -> None:
    checks = {check.id: check for check in all_checks(facts_of(tmp_path, has_bootstrap=True))}
    assert checks["002/observe/ports"].machine == "bootstrap"
    assert checks["004/pivot/complete"].look().outcome is Outcome.SKIP
