"""Guide 004: the bootstrap's steps one by one, and what is left of them in the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.bootkube_guide import manifests_on_bootstrap
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check
from falsework.checks.verify.said import every_row, has, is_exactly, nothing
from falsework.checks.verify.typed import ETCDCTL

FILE = "004_a427be9977339d9f.txt"
_ETCD = "启动etcd单节点集群"
_CONTROL_PLANE = "启动临时k8s control plane"
_PIVOT = "6. 临时 control plane 关机，并将控制权交给生产环境 control plane。"
_OVERRIDES = "cluster version operator配置override"
_REMOVED = "bootstrap etcd节点移除出etcd集群"
_PODMAN = (
    "podman run --quiet --net=host --rm --env ETCDCTL_API=3 --volume /opt/openshift/tls:/opt/openshift/tls:ro,z "
    '--entrypoint etcdctl "IMAGE" --dial-timeout=10m --cacert=/opt/openshift/tls/etcd-ca-bundle.crt '
    "--cert=/opt/openshift/tls/etcd-client.crt --key=/opt/openshift/tls/etcd-client.key "
    '--endpoints="https://localhost:2379" endpoint health'
)
_REQUIRED = (
    ("openshift-kube-apiserver", "kube-apiserver"),
    ("openshift-kube-scheduler", "openshift-kube-scheduler"),
    ("openshift-kube-controller-manager", "kube-controller-manager"),
    ("openshift-cluster-version", "cluster-version-operator"),
)


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    added = "journalctl -b -u kubelet.service --no-pager | grep -m1 'SyncLoop ADD.*source=\"file\" pods=.[^]]'"
    yield guide.on_bootstrap(
        Command(
            "etcd/kubelet",
            _ETCD,
            "journalctl -b -u kubelet.service",
            'SyncLoop ADD source="file": the kubelet has found static pods',
            as_run=added,
            because="the line that tells of it",
        ),
        has("SyncLoop ADD"),
        afterwards=added,
    )
    health = f"{ETCDCTL} endpoint health"
    yield guide.on_bootstrap(
        Command(
            "etcd/health",
            _ETCD,
            _PODMAN,
            "healthy",
            as_run=health,
            because="there is no podman: the same words, in etcd's own container",
        ),
        has("is healthy"),
        terminal=True,
        afterwards=health,
    )
    yield manifests_on_bootstrap(guide, "control-plane/manifests", _CONTROL_PLANE)
    for namespace, name in _REQUIRED:
        yield guide.in_shell(
            Command(
                f"pivot/{name}",
                _PIVOT,
                f"REQUIRED_PODS={namespace}/{name}",
                "one pod or more, ready",
                as_run=f"oc get pods -n {namespace} --field-selector status.phase=Running | grep '^{name}-'",
                because="what bootkube waits for, looked at by hand",
            ),
            has(f"{name}-"),
        )
    yield from _handed_over(guide)


def _handed_over(guide: Guide) -> Iterator[Check]:
    patch = (
        "oc patch clusterversion.config.openshift.io version --kubeconfig=/opt/openshift/auth/kubeconfig --type=merge "
        "--patch-file=/opt/openshift/original_cvo_overrides.patch"
    )
    waiting = "cluster-etcd-operator wait-for-ceo --kubeconfig /assets/auth/kubeconfig"
    removed = "EtcdBootstrapMemberRemoved"
    done = "bootkube.service complete"
    if guide.facts.bootstrap is not None:
        reason = "the bootstrap has not made way yet"
        for name, section, command in (
            ("pivot/overrides", _OVERRIDES, patch),
            ("pivot/etcd-runs", _REMOVED, waiting),
            ("pivot/etcd-removed", _REMOVED, removed),
            ("pivot/complete", _REMOVED, done),
        ):
            yield guide.not_here(Command(name, section, command), reason)
        return
    yield guide.in_shell(
        Command(
            "pivot/overrides",
            _OVERRIDES,
            patch,
            "the installer's overrides are gone",
            as_run="oc get clusterversion.config.openshift.io version -o jsonpath='{.spec.overrides}'",
            because="what the patch has done",
        ),
        nothing("no overrides"),
    )
    for name, command, kind in (("etcd-runs", waiting, "EtcdRunningInCluster"), ("etcd-removed", removed, removed)):
        yield guide.in_shell(
            Command(
                f"pivot/{name}",
                _REMOVED,
                command,
                f"{kind} is True",
                as_run=f"oc get etcd cluster -o jsonpath='{{.status.conditions[?(@.type==\"{kind}\")].status}}'",
                because="the condition itself",
            ),
            is_exactly("True"),
        )
    yield guide.in_shell(
        Command(
            "pivot/complete",
            _REMOVED,
            done,
            "complete",
            as_run="oc get configmap bootstrap -n kube-system -o jsonpath='{.data.status}'",
            because="where bootkube has noted it",
        ),
        every_row("complete", lambda row: row == ["complete"]),
    )
