"""Guide 001: the bootstrap machine and its temporary control plane; afterwards, the same of the masters' own."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check, Verdict
from falsework.checks.verify.said import counts_at_least, ends_well, fine, has, is_exactly, passed_with_lines
from falsework.checks.verify.typed import STATIC_PODS, of_etcd

FILE = "001_c0d4e7bcb57ed271.txt"
_PROGRESS = "Step 2: Monitor Bootstrap Progress"
_API = "Step 3: Verify API Server"
_STATUS = "Step 4: Monitor Cluster Status"
_ETCD = "Stage 4: etcd starts"
_CHECKLIST = "Verification Checklist"
_NODE_KUBECONFIG = (
    "$(ls -v /etc/kubernetes/static-pod-resources/kube-apiserver-pod-*/secrets/node-kubeconfigs/localhost.kubeconfig"
    " | tail -1)"
)
"""Of the API server's newest revision."""
_PHRASES = (
    "Starting bootkube.sh...",
    "Rendering etcd manifests...",
    "API server is up",
    "Applying cluster manifests...",
)


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    yield from _progress(guide)
    yield from _api(guide)
    yield from _status(guide)
    yield from _checklist(guide)


def _progress(guide: Guide) -> Iterator[Check]:
    facts = guide.facts
    machine = facts.bootstrap or facts.master
    yield guide.looked(
        Command(
            "progress/ssh",
            _PROGRESS,
            "ssh core@${BOOTSTRAP_IP}",
            "core can log in",
            as_run=f"falsework ssh {machine.name} -- id -un",
            because="with the lab's key" + ("" if facts.bootstrap else "; the bootstrap has made way"),
        ),
        lambda: _logs_in(facts),
    )
    yield guide.on_bootstrap(
        Command(
            "progress/bootkube",
            _PROGRESS,
            "sudo journalctl -u bootkube -f",
            "bootkube tells its stages",
            as_run="sudo journalctl -u bootkube --no-pager",
            because="all of it, without following",
        ),
        has(*_PHRASES),
    )
    last = "sudo journalctl -u kubelet --no-pager -n 20"
    yield guide.on_bootstrap(
        Command(
            "progress/kubelet",
            _PROGRESS,
            "sudo journalctl -u kubelet -f",
            "the kubelet's journal can be read",
            as_run=last,
            because="its last lines, without following",
        ),
        has("kubelet"),
        afterwards=last,
    )
    yield guide.on_bootstrap(
        Command("progress/pods", _PROGRESS, "sudo crictl pods", ", ".join(STATIC_PODS)),
        has(*STATIC_PODS),
        afterwards="sudo crictl pods --state ready",
    )


def _logs_in(facts: Facts) -> Verdict:
    return is_exactly("core")(facts.commands.by_ssh(facts.bootstrap or facts.master, "id -un"))


def _api(guide: Guide) -> Iterator[Check]:
    by_name = f"curl -sSk https://{guide.facts.site.api_host}:6443/healthz"
    yield guide.in_shell(
        Command(
            "api/by-name",
            _API,
            "curl -k https://api.${CLUSTER_DOMAIN}:6443/healthz",
            "ok",
            as_run=by_name,
            because="this cluster's domain",
        ),
        is_exactly("ok"),
    )
    yield _localhost(guide, "api/localhost", _API)


def _localhost(guide: Guide, name: str, section: str) -> Check:
    quietly = "curl -sSk https://localhost:6443/healthz"
    command = "curl -k https://localhost:6443/healthz"
    return guide.on_bootstrap(
        Command(name, section, command, "ok", as_run=quietly, because="without curl's meter"),
        is_exactly("ok"),
        afterwards=quietly,
    )


def _status(guide: Guide) -> Iterator[Check]:
    kubeconfig = f"KUBECONFIG={guide.facts.lab.site_folder}/kubeconfigs/admin.kubeconfig"
    for name, command, expected in (
        ("nodes", "oc get nodes", "the list of nodes"),
        ("pods", "oc get pods -A", "the pods of the cluster"),
        ("operators", "oc get co", "the cluster's operators"),
    ):
        yield guide.in_shell(
            Command(
                f"status/{name}",
                _STATUS,
                f"export KUBECONFIG=${{ASSETS_DIR}}/kubeconfigs/admin.kubeconfig; {command}",
                expected,
                as_run=f"{kubeconfig} {command}",
                because="this site's folder",
            ),
            fine(passed_with_lines),
        )


def _checklist(guide: Guide) -> Iterator[Check]:
    yield guide.on_bootstrap(
        Command(
            "etcd/log",
            _ETCD,
            "sudo crictl logs $(sudo crictl ps -q --name etcd)",
            "etcd writes a log",
            as_run="sudo crictl logs $(sudo crictl ps -q --name etcd) 2>&1 | tail -1",
            because="its last line; etcd never says that it is healthy, `etcdctl endpoint health` does",
        ),
        ends_well(),
        afterwards="sudo crictl logs $(sudo crictl ps -q --name etcd) 2>&1 | tail -1",
    )
    for name, section, words in (
        ("etcd/cluster", _ETCD, "endpoint health --cluster"),
        ("checklist/etcd", _CHECKLIST, "endpoint health"),
    ):
        yield of_etcd(guide, name, section, words, "every endpoint is healthy", has("is healthy"))
    count = "sudo crictl pods --state ready -q | wc -l"
    yield guide.on_bootstrap(
        Command(
            "checklist/pods",
            _CHECKLIST,
            "sudo crictl pods | grep -c Running",
            "4 or more",
            as_run=count,
            because="crictl's word for a pod that runs is Ready",
        ),
        counts_at_least(4),
        afterwards=count,
    )
    yield _localhost(guide, "checklist/api", _CHECKLIST)
    yield guide.on_bootstrap(
        Command(
            "checklist/namespaces",
            _CHECKLIST,
            "oc --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig get ns",
            "the cluster's namespaces",
        ),
        has("kube-system", "openshift-etcd"),
        afterwards=f"oc --kubeconfig={_NODE_KUBECONFIG} get ns",
    )
