"""Guide 000, from the cluster's first nodes on: test, scheduling on masters, storage, registry, troubleshooting."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.checks.verify.cluster import masters_match_scheduler
from falsework.checks.verify.day_one import FILE
from falsework.checks.verify.facts import Facts
from falsework.checks.verify.guide import NO_CONSOLE, Command, Guide
from falsework.checks.verify.model import Check, Place, Verdict, failed, passed, skipped
from falsework.checks.verify.said import Judge, Said, ends_well, every_row, has, has_at_least, is_exactly, nothing
from falsework.site import ports

_TEST = "Test"
_SCHEDULING = "To allow scheduling user pods onto master nodes"
_NFS = "Installing NFS Server in Oracle Linux"
_IMPORT = "Importing Container Images into Openshift's Internal registry"
_NO_CONSOLE_ANSWER = "Troubleshooting webconsole not accessible"
_ROUTES = "Troubleshooting routes"
_REGISTRY = "Configure the Openshift's Internal Registry"
_LOGS = "Troubleshooting logs retrieval errors in commandline and webconsole for every application"
_LOOKS_ONLY = "a check changes nothing"
_PENDING = "oc get csr -o go-template='{{range .items}}{{if not .status}}{{.metadata.name}}{{\"\\n\"}}{{end}}{{end}}'"
_CONSOLE = "oc get configmap console-public -n openshift-config-managed -o jsonpath='{.data.consoleURL}'"
STORAGE = b"""\
apiVersion: v1
kind: PersistentVolume
metadata:
  name: image-registry-pv
spec:
  capacity:
    storage: 100Gi
  claimRef:
    apiVersion: v1
    kind: PersistentVolumeClaim
    name: image-registry-storage
    namespace: openshift-image-registry
  accessModes:
  - ReadWriteMany
  nfs:
    path: /var/nfs/jegan/image-registry
    server: 192.168.1.127
  persistentVolumeReclaimPolicy: Retain
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  finalizers:
  - kubernetes.io/pvc-protection
  name: image-registry-storage
  namespace: openshift-image-registry
spec:
  accessModes:
  - ReadWriteMany
  resources:
    requests:
      storage: 100Gi
"""
"""storage.yml, as printed."""


def checks(facts: Facts) -> Iterator[Check]:
    guide = Guide(facts, FILE)
    yield from _test(guide)
    yield from _scheduling(guide)
    yield from _storage(guide)
    yield from _troubleshooting(guide)
    yield from _registry(guide)


def _is_ready(row: list[str]) -> bool:
    return len(row) > 1 and row[1].split(",")[0] == "Ready"


def _test(guide: Guide) -> Iterator[Check]:
    site = guide.facts.site
    yield guide.in_shell(Command("test/whoami", _TEST, "oc whoami", "system:admin"), is_exactly("system:admin"))
    yield guide.in_shell(
        Command("test/server", _TEST, "oc whoami --show-server", f"https://{site.api_host}:{ports.API}"),
        is_exactly(f"https://{site.api_host}:{ports.API}"),
    )
    yield guide.in_shell(
        Command(
            "test/version",
            _TEST,
            "oc get clusterversions.config.openshift.io",
            "version is available and not progressing",
            as_run="oc get clusterversions.config.openshift.io --no-headers",
            because="without the table's head",
        ),
        every_row("available", lambda row: row[2:4] == ["True", "False"]),
    )
    for name, section in (("test/nodes", _TEST), ("scheduling/nodes", _SCHEDULING)):
        yield guide.in_shell(
            Command(
                name,
                section,
                "oc get nodes",
                "every machine is a Ready node",
                as_run="oc get nodes --no-headers",
                because="without the table's head",
            ),
            every_row("Ready", _is_ready, len(site.masters) + len(site.workers)),
        )
    yield guide.in_shell(
        Command(
            "test/requests",
            _TEST,
            "oc get csr",
            "none is pending",
            as_run="oc get csr --no-headers",
            because="without the table's head",
        ),
        every_row("decided", lambda row: "Pending" not in row[-1], 0),
    )
    yield guide.in_shell(
        Command(
            "test/pending",
            _TEST,
            f"{_PENDING} | xargs oc adm certificate approve",
            "nothing is left to approve",
            as_run=_PENDING,
            because=_LOOKS_ONLY,
        ),
        nothing("nothing is pending"),
    )
    yield guide.in_shell(
        Command(
            "test/operators",
            _TEST,
            "oc get co",
            "every operator is available, not progressing, not degraded",
            as_run="oc get co --no-headers",
            because="without the table's head",
        ),
        every_row("available", lambda row: row[2:5] == ["True", "False", "False"]),
    )
    domain = "oc get ingresscontroller default -n openshift-ingress-operator -o jsonpath='{.status.domain}'"
    yield guide.in_shell(Command("test/domain", _TEST, domain, site.apps_domain), is_exactly(site.apps_domain))
    yield guide.looked(
        Command(
            "test/console",
            _TEST,
            "oc whoami --show-console",
            f"https://console-openshift-console.{site.apps_domain}",
            as_run=_CONSOLE,
            because="oc is kubectl here: where the real one looks, by hand",
        ),
        lambda: _console(guide.facts),
    )


def _console(facts: Facts) -> Verdict:
    said = facts.commands.in_shell(f"{_CONSOLE} --ignore-not-found")
    if said.code == 0 and not said.output.strip():
        return skipped(NO_CONSOLE)
    return is_exactly(f"https://console-openshift-console.{facts.site.apps_domain}")(said)


def _scheduling(guide: Guide) -> Iterator[Check]:
    yield guide.looked(
        Command(
            "scheduling/masters",
            _SCHEDULING,
            "oc edit schedulers.config.openshift.io cluster",
            "masters have the worker role if and only if mastersSchedulable is true",
            as_run="oc get schedulers.config.openshift.io cluster -o yaml; oc get nodes",
            because=_LOOKS_ONLY,
        ),
        lambda: masters_match_scheduler(guide.facts),
    )


def _storage(guide: Guide) -> Iterator[Check]:
    site = guide.facts.site
    if site.nfs_shares:
        yield guide.on_helper(
            Command(
                "nfs/exports",
                _NFS,
                "showmount -e localhost",
                "every share of the site",
                as_run="showmount -e 127.0.0.1",
                because="the export list is served on IPv4",
            ),
            has(*(share.path for share in site.nfs_shares)),
        )
    else:
        yield guide.not_here(
            Command("nfs/exports", _NFS, "showmount -e localhost"), "the site has no NFS shares", place=Place.HELPER
        )
    yield guide.not_here(
        Command(
            "registry/import",
            _IMPORT,
            "oc import-image ubi8/openjdk-11:1.20-2.1727147549 "
            "--from=registry.access.redhat.com/ubi8/openjdk-11:1.20-2.1727147549 --confirm",
        ),
        "it needs OpenShift's own image API (image.openshift.io), and a registry outside",
    )


def _troubleshooting(guide: Guide) -> Iterator[Check]:
    site = guide.facts.site
    yield _of_operator(
        guide,
        "ingress",
        Command(
            "ingress/routers",
            _NO_CONSOLE_ANSWER,
            "oc -n openshift-ingress get pod -o json | jq -r '.items[].metadata.name' | "
            "xargs oc -n openshift-ingress delete pod",
            "routers run",
            as_run="oc -n openshift-ingress get pods --no-headers",
            because=_LOOKS_ONLY,
        ),
        every_row("Running", lambda row: row[2] == "Running"),
    )
    yield _of_operator(
        guide,
        "console",
        Command(
            "console/pods",
            _NO_CONSOLE_ANSWER,
            "oc -n openshift-console get pods -w",
            "the console's pods run",
            as_run="oc -n openshift-console get pods --no-headers",
            because="a look, without following it",
        ),
        every_row("Running", lambda row: row[2] == "Running"),
    )
    yield guide.in_shell(
        Command(
            "ingress/domain", _ROUTES, "oc get ingresses.config/cluster -o jsonpath={.spec.domain}", site.apps_domain
        ),
        is_exactly(site.apps_domain),
    )
    yield guide.in_shell(
        Command(
            "logs/requests",
            _LOGS,
            "oc get csr -o name | xargs oc adm certificate approve",
            "requests are named as the command wants them",
            as_run="oc get csr -o name",
            because=_LOOKS_ONLY,
        ),
        every_row("named", lambda row: row[0].startswith("certificatesigningrequest"), 0),
    )


def _of_operator(guide: Guide, name: str, command: Command, judge: Judge) -> Check:
    """There is something to look at only if the cluster has this operator."""

    def look() -> Verdict:
        if not guide.facts.cluster.has_operator(name):
            return skipped(NO_CONSOLE if name == "console" else f"the cluster has no operator {name}")
        return judge(guide.facts.commands.in_shell(command.typed))

    return guide.looked(command, look)


def _management_state(said: Said) -> Verdict:
    state = said.output.strip()
    good = said.code == 0 and state in ("Managed", "Removed", "Unmanaged")
    return passed(state) if good else failed(said.last_word)


def _registry(guide: Guide) -> Iterator[Check]:
    config = "oc get configs.imageregistry.operator.openshift.io cluster -o jsonpath='{.spec.managementState}'"
    yield guide.in_shell(
        Command(
            "registry/storage",
            _REGISTRY,
            "oc apply -f storage.yml",
            "the API would take both objects",
            as_run="oc apply --dry-run=server -f -",
            because=f"{_LOOKS_ONLY}: the API says what it would do",
        ),
        has_at_least(2, r"\(server dry run\)"),
        given=STORAGE,
    )
    yield guide.in_shell(
        Command(
            "registry/pods",
            _REGISTRY,
            "oc get po -n openshift-image-registry",
            "the namespace is there; its pods run",
            as_run="oc get po -n openshift-image-registry --no-headers",
            because="without the table's head",
        ),
        every_row("Running", lambda row: row[2] in ("Running", "Completed"), 0),
    )
    yield _of_operator(
        guide,
        "image-registry",
        Command(
            "registry/config",
            _REGISTRY,
            "oc edit configs.imageregistry.operator.openshift.io -n openshift-image-registry",
            "a managementState: Removed until it is given storage",
            as_run=config,
            because=_LOOKS_ONLY,
        ),
        _management_state,
    )
    yield guide.in_shell(
        Command(
            "registry/watch",
            _REGISTRY,
            "oc get po -n openshift-image-registry -w",
            "the list can be read",
            as_run="oc get po -n openshift-image-registry --no-headers",
            because="a look, without following it",
        ),
        ends_well(),
    )
