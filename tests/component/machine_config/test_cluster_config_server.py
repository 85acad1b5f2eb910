"""The masters' Machine Config Server as a process against a real API, with exactly the rights of its manifests."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from machine_config_cluster import machine_config_cluster, manifests_of
from operator_process import account_of
from real_api import RealApi, free_port

from eventually import eventually
from falsework.assets.ignition import files_in
from falsework.kube.client import Client
from falsework.kube.resources import CONFIG_MAPS, MACHINE_CONFIG_POOLS, SECRETS
from falsework.operators.machine_config import names
from falsework.operators.machine_config.served import Fetch, fetches_in

ACCEPT = "application/vnd.coreos.ignition+json;version=3.5.0"
ADDRESSES = {"master-0": "127.0.0.21", "worker-0": "127.0.0.31"}


@pytest.fixture(scope="module")
def client(cluster_api: RealApi) -> Iterator[Client]:
    addresses = {cluster_api.site.fqdn(cluster_api.machine(name)): where for name, where in ADDRESSES.items()}
    with machine_config_cluster(cluster_api, addresses) as client:
        yield client


@pytest.fixture(scope="module")
def port(cluster_api: RealApi, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder, port = tmp_path_factory.mktemp("config-server"), free_port()
    certificates = folder / "tls"
    certificates.mkdir()
    for ending in ("crt", "key"):
        content = (cluster_api.folder / "tls" / f"machine-config-server.{ending}").read_bytes()
        (certificates / f"tls.{ending}").write_bytes(content)
    words = (
        *("setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "falsework.in_machine"),
        *("cluster-machine-config-server", "--release-version=1", f"--port={port}"),
        f"--kubeconfig={account_of(cluster_api, manifests_of('machine-config-server'))}",
        f"--certificates={certificates}",
    )
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            eventually(lambda: process.poll() is not None or listens(port), "it does not listen")
            assert process.poll() is None, (folder / "log").read_text()
            yield port
            assert "could not" not in (folder / "log").read_text()
        finally:
            process.terminate()
            assert process.wait(60) == 0


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ask(api: RealApi, port: int, path: str, source: str) -> tuple[int, bytes]:
    trust = ssl.create_default_context(cafile=str(api.folder / "tls/root-ca.crt"))
    trust.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, source_address=(source, 0), timeout=60)
    connection.request("GET", path, headers={"Accept": ACCEPT})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


@pytest.mark.parametrize(("name", "pool"), [("master-0", "master"), ("worker-0", "worker")])
def test_a_machine_gets_its_config_and_is_noted(
    cluster_api: RealApi, client: Client, port: int, name: str, pool: str
) -> None:
    status, content = ask(cluster_api, port, f"/config/{pool}", ADDRESSES[name])
    assert status == 200, content
    files = files_in(json.loads(content))
    assert b"system" in files["/etc/kubernetes/kubelet.conf"]
    assert b"api-int" in files["/etc/kubernetes/kubeconfig"]
    node = cluster_api.site.fqdn(cluster_api.machine(name))
    wanted = client.get(MACHINE_CONFIG_POOLS, pool)["spec"]["configuration"]["name"]
    eventually(lambda: node in noted(client), "it is noted")
    assert noted(client)[node].config == wanted
    assert abs(noted(client)[node].time - time.time()) < 60


def noted(client: Client) -> dict[str, Fetch]:
    return fetches_in(client.get(CONFIG_MAPS, names.SERVED, names.NAMESPACE))


def test_others_get_nothing(cluster_api: RealApi, port: int) -> None:
    assert ask(cluster_api, port, "/config/master", ADDRESSES["worker-0"])[0] == 403
    assert ask(cluster_api, port, "/config/worker", "127.0.0.99")[0] == 403
    assert ask(cluster_api, port, "/healthz", "127.0.0.99") == (200, b"")


def test_who_belongs_to_the_site_may_change(cluster_api: RealApi, client: Client, port: int) -> None:
    stranger = "127.0.0.77"
    assert ask(cluster_api, port, "/config/worker", stranger)[0] == 403
    found = client.get(CONFIG_MAPS, names.INVENTORY, names.INVENTORY_NAMESPACE)
    site = json.loads(found["data"][names.SITE_KEY])
    next(machine for machine in site["machines"] if machine["name"].startswith("worker-1."))["address"] = stranger
    patch = {"data": {names.SITE_KEY: json.dumps(site)}}
    client.patch(CONFIG_MAPS, names.INVENTORY, patch, names.INVENTORY_NAMESPACE)
    eventually(lambda: ask(cluster_api, port, "/config/worker", stranger)[0] == 200, "it belongs to the site now")


def test_a_credential_may_be_renewed_and_retired(cluster_api: RealApi, client: Client, port: int) -> None:
    node = cluster_api.site.fqdn(cluster_api.machine("worker-0"))

    def served() -> tuple[int, bytes]:
        status, content = ask(cluster_api, port, "/config/worker", ADDRESSES["worker-0"])
        return status, files_in(json.loads(content))["/etc/kubernetes/kubeconfig"] if status == 200 else b""

    def gives(value: str | None) -> None:
        client.patch(SECRETS, names.JOIN_SECRET, {"data": {node: value}}, names.NAMESPACE)

    before = client.get(SECRETS, names.JOIN_SECRET, names.NAMESPACE)["data"][node]
    gives(base64.b64encode(b"renewed").decode())
    eventually(lambda: served() == (200, b"renewed"), "the renewed one is served")
    gives(None)
    eventually(lambda: served()[0] == 500, "without a credential there is no config")
    gives(before)
    eventually(lambda: served()[0] == 200, "it is served again")


def test_a_pool_whose_config_is_missing_is_asked_again(cluster_api: RealApi, client: Client, port: int) -> None:
    """Ignition asks again after a 500, and by then the operator has rendered it."""
    before = client.get(MACHINE_CONFIG_POOLS, "master")["spec"]["configuration"]["name"]
    for part, subresource in (("spec", ""), ("status", "status")):
        patch = {part: {"configuration": {"name": "rendered-master-none"}}}
        client.patch(MACHINE_CONFIG_POOLS, "master", patch, subresource=subresource)
    eventually(lambda: ask(cluster_api, port, "/config/master", ADDRESSES["master-0"])[0] == 500, "it is not there")
    for part, subresource in (("spec", ""), ("status", "status")):
        patch = {part: {"configuration": {"name": before}}}
        client.patch(MACHINE_CONFIG_POOLS, "master", patch, subresource=subresource)
    eventually(lambda: ask(cluster_api, port, "/config/master", ADDRESSES["master-0"])[0] == 200, "it is there")
