"""bootkube: the bootstrap machine becomes a control plane, raises the real one and makes way for it.

The stages have OpenShift's names and order, and are told in its words and in those of the guides people follow. Kill it
at any line and start it again: a stage that was done is skipped, one that was not is done again.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from falsework import process
from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.bootstrap import api_hold, api_probe, etcd_health, pivot, places, records
from falsework.bootstrap.apply import apply_all
from falsework.bootstrap.disk import Disk
from falsework.bootstrap.etcd_hand_over import EtcdHandOver, local_etcd
from falsework.bootstrap.facts import load_facts
from falsework.bootstrap.rendering import Rendering
from falsework.bootstrap.service import run_service, say
from falsework.bootstrap.stage_runner import StageRunner
from falsework.bootstrap.waiting import Wait
from falsework.control_plane.flags import API_PORT
from falsework.errors import FalseworkError
from falsework.etcd.settings import CLIENT_PORT
from falsework.kube.client import Client, Unreachable
from falsework.kube.cluster import Cluster
from falsework.manifests.release import api_manifests, config_manifests

_API_LIMIT = 20 * 60
_PIVOT_PAUSE = 0.3
_WAY_PAUSE = 0.1
_APPLIED = places.HOME / "cluster-manifests.done"


@dataclass(frozen=True)
class Bootkube:
    facts: BootstrapFacts
    disk: Disk
    stages: StageRunner

    def run(self) -> None:
        say("Starting bootkube.sh...")
        api_hold.let_go()
        rendering = Rendering(self.disk, self.facts)
        rendering.clean()
        self.render(rendering)
        self.render_cluster(rendering)
        self.stages.run("cluster-secrets", rendering.cluster_secrets, "Rendering cluster secrets...")
        self._resolve()
        self.stages.run("wait-for-etcd", self._wait_for_etcd, "Waiting for etcd to be healthy...")
        self.stages.run("cb-bootstrap", lambda: self._cluster_bootstrap(rendering), "Starting cluster-bootstrap...")
        self._make_way(rendering)
        self.disk.write(places.DONE, b"")
        say("bootkube.service complete")

    # The temporary control plane

    def render(self, rendering: Rendering) -> None:
        stages = self.stages
        # First what needs nobody: masters wait for the one, everything else for the other.
        stages.run("mco-bootstrap", rendering.machine_config_server, "Rendering MCO manifests...")
        stages.run("etcd-bootstrap", rendering.etcd, "Rendering CEO Manifests...", "Rendering etcd manifests...")
        stages.run(
            "openshift-manifests", rendering.move_manifests, "Moving OpenShift manifests in with the rest of them"
        )
        stages.run(
            "cvo-bootstrap",
            lambda: rendering.temporary_pod("bootstrap-pod.yaml"),
            "Rendering Cluster Version Operator Manifests...",
        )
        stages.run(
            "kube-apiserver-bootstrap",
            lambda: rendering.temporary_pod("kube-apiserver-pod.yaml"),
            "Rendering Kubernetes API server core manifests...",
            "Rendering kube-apiserver manifests...",
        )
        stages.run(
            "kube-controller-manager-bootstrap",
            lambda: rendering.temporary_pod("kube-controller-manager-pod.yaml"),
            "Rendering Kubernetes Controller Manager core manifests...",
        )
        stages.run(
            "kube-scheduler-bootstrap",
            lambda: rendering.temporary_pod("kube-scheduler-pod.yaml"),
            "Rendering Kubernetes Scheduler core manifests...",
        )

    def render_cluster(self, rendering: Rendering) -> None:
        """Needed only once the API answers: it is done while etcd starts."""
        for name, manifests, phrase in (
            ("api-bootstrap", api_manifests, "Rendering api manifests..."),
            ("config-bootstrap", config_manifests, "Rendering cluster config manifests..."),
        ):
            self.stages.run(name, partial(rendering.cluster_manifests, manifests()), phrase)

    def _resolve(self) -> None:
        for kind, host in self._api_hosts():
            self.stages.attempt(f"resolve-{kind}-url", partial(resolve, host), marker=f"{kind}-dns-resolved")

    def _wait_for_etcd(self) -> None:
        Wait(say).until("etcd", lambda: etcd_health.unhealthy(places.TLS, CLIENT_PORT))
        say("etcd is healthy")

    def _cluster_bootstrap(self, rendering: Rendering) -> None:
        say("Starting temporary bootstrap control plane...")
        rendering.start_api()
        client = Client.from_kubeconfig(places.LOOPBACK_KUBECONFIG)
        say("Waiting up to 20m0s for the Kubernetes API")
        say("Waiting for API server to come up...")
        wait = Wait(say, limit=_API_LIMIT)
        wait.until("the Kubernetes API", lambda: api_probe.silent(client))
        rendering.start_clients()
        wait.until("the Kubernetes API", lambda: api_missing(client))
        say("API is up")
        say("API server is up")
        say("Applying cluster manifests...")
        applying = Applying(client)
        applying.start()
        say("Waiting for bootstrap to complete...")
        self._wait_for_masters(client, applying)
        pivot.tell(client, "bootstrap-success", "Required control plane pods have been created")
        say("Waiting for remaining assets to be created.")
        applying.finish()
        pivot.tell(client, "bootstrap-finished", "Cluster bootstrapping finished")
        say("Tearing down temporary bootstrap control plane...")
        rendering.stop_temporary()

    def _wait_for_masters(self, client: Client, applying: Applying) -> None:
        wait = Wait(say, pause=_PIVOT_PAUSE)
        hand_over = EtcdHandOver(local_etcd(places.TLS), self.facts.control_plane_replicas, say)

        with closing(Cluster(client)) as cluster:
            pods = pivot.RequiredPods(cluster, say)

            def missing() -> str | None:
                """A master leads etcd long before its API server runs."""
                leading, running = hand_over.missing(), pods.missing()
                return running or leading

            wait.until("the masters' control plane", applying.meanwhile(missing))
        say("All self-hosted control plane components successfully started")
        serving = pivot.MastersServe(self.facts.masters)
        is_redundant = self.facts.control_plane_replicas >= 3
        if is_redundant:
            say("Waiting for self hosted control plane to be available")

        def unavailable() -> str | None:
            """The load balancer notices the masters while their operator waits for their pods."""
            silent, behind = serving.missing(), pivot.revisions_missing(client) if is_redundant else None
            return behind or silent

        wait.until("the masters' API servers", applying.meanwhile(unavailable))

    # Making way. From here on the API is the masters', through the load balancer.

    def _make_way(self, rendering: Rendering) -> None:
        client = Client.from_kubeconfig(places.KUBECONFIG)
        calm = Wait(say, pause=_WAY_PAUSE)
        for name in pivot.LEASES_TO_FREE:
            held = partial(pivot.lease_held, client, name, self.facts.name)
            self.stages.run(f"free-lease-{name}", partial(calm.until, f"{name}'s lease", held))
        self.stages.run("cvo-overrides", lambda: self._restore_overrides(client, calm), "Restoring CVO overrides")
        rendering.stop_machine_config_server()
        self.stages.run(
            "wait-for-ceo",
            lambda: calm.until("etcd in the cluster", lambda: pivot.etcd_missing(client)),
            "Waiting for CEO to finish...",
        )
        calm.until("the end of the temporary API server", pivot.api_answers)
        for kind, host in self._api_hosts():
            self.stages.attempt(f"check-{kind}-url", partial(check, host), marker=f"{kind}-dns-check")

    def _restore_overrides(self, client: Client, wait: Wait) -> None:
        patch = self.disk.read(places.OVERRIDES_PATCH)

        def look() -> str | None:
            reason = pivot.overrides_kept(client, patch)
            return reason and f"Trying again to restore CVO overrides: {reason}"

        wait.until("ClusterVersion version", look)

    def _api_hosts(self) -> tuple[tuple[str, str], ...]:
        return ("api", self.facts.api_host), ("api-int", self.facts.api_int_host)


class Applying(threading.Thread):
    """The cluster's manifests, applied while we wait for those who need them."""

    def __init__(self, client: Client) -> None:
        super().__init__(name="apply", daemon=True)
        self._client = client
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            apply_all(self._client, places.CLUSTER_MANIFESTS, say, _APPLIED)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            self._error = error

    def meanwhile(self, look: Callable[[], str | None]) -> Callable[[], str | None]:
        """The same question; but if the thread has failed, that is raised instead of waiting on."""

        def both() -> str | None:
            self._check()
            return look()

        return both

    def finish(self) -> None:
        self.join()
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error


def api_missing(client: Client) -> str | None:
    try:
        return api_probe.refusal(*client.raw("GET", "/readyz"))
    except Unreachable as error:
        return error.one_line


def resolve(host: str) -> None:
    """The names machines use must be in the DNS, and not merely known to this machine."""
    answer = process.run(["dig", "+short", "+time=2", "+tries=2", host], silence_limit=10).output.strip()
    if not answer:
        raise FalseworkError(f"{host} is not in the DNS", cause="no address came back", fix="add an A record for it")


def check(host: str) -> None:
    authority = places.TLS / "kube-apiserver-complete-server-ca-bundle.crt"
    if reason := api_probe.not_ready(host, API_PORT, authority):
        raise FalseworkError(f"the API cannot be reached as {host}", cause=reason, fix="look at its load balancer")


def main(words: list[str]) -> int:
    argparse.ArgumentParser(prog="bootkube", description=__doc__).parse_args(words)
    return run_service("bootkube", _run)


def _run(records: records.Records) -> None:
    disk = Disk(Path("/"))
    Bootkube(load_facts(), disk, StageRunner(disk, records, say)).run()
