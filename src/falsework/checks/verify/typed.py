"""Commands that several guides have in common."""

from __future__ import annotations

from falsework.checks.verify.guide import Command, Guide
from falsework.checks.verify.model import Check
from falsework.checks.verify.said import Judge

STATIC_PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ETCDCTL = "sudo crictl exec -it $(sudo crictl ps -q --name etcd) etcdctl"


def of_etcd(guide: Guide, name: str, section: str, words: str, expected: str, judge: Judge) -> Check:
    """At a terminal, which `-t` insists on."""
    command = f"{ETCDCTL} {words}"
    return guide.on_bootstrap(Command(name, section, command, expected), judge, terminal=True, afterwards=command)
