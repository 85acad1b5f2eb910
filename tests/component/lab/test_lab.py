"""A whole lab: the helper with all its servers, and machines that boot from it."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from falsework.machines.provider import Power
from falsework.release.inventory import Release
from lab_under_test import LabUnderTest, events_of

DOMAIN = "lab.falsework.test"


@pytest.fixture(scope="module")
def lab(beside_cache: Path, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    lab = LabUnderTest.below(beside_cache / "lab-state", tmp_path_factory.mktemp("lab"))
    try:
        lab.run("up", "--until", "helper")
        # Before there is anybody who could give it its config.
        lab.run("machine", "start", "master-0", "--no-wait")
        lab.until("master-0", Power.BOOTING, f"https://api-int.{DOMAIN}:22623/config/master")
        time.sleep(2)
        assert lab.machines.state("master-0").power is Power.BOOTING
        lab.run("machine", "start", "bootstrap")
        # It boots, and joins nothing: with a master, the control plane would not stay the bootstrap's.
        lab.until("master-0", Power.RUNNING)
        lab.inside("master-0", "systemctl", "mask", "--now", "--runtime", "first-join.service", "kubelet.service")
        yield lab
    finally:
        lab.run("destroy", "--yes")


def dig(lab: LabUnderTest, *words: str) -> list[str]:
    return sorted(lab.run("shell", "-c", f"dig +short {' '.join(words)}").split("\n")[:-1])


def ledger_with(lab: LabUnderTest, asked: str, *words: str, more_than: int = 0) -> list[dict[str, Any]]:
    """What the ledger has of this. Services write down what they have done after they have done it."""
    deadline = time.monotonic() + 60
    while len(found := [entry for entry in lab.ledger(*words) if asked in entry["asked"]]) <= more_than:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


# Stages


def test_a_second_run_finds_everything_done(lab: LabUnderTest) -> None:
    events = events_of(lab.run("up", "--until", "helper", "--json"))
    skipped = {event["stage"] for event in events if event.get("state") == "skipped"}
    assert skipped == {"release", "assets", "network", "helper"}


def test_a_dry_run_says_that_nothing_is_to_be_done(lab: LabUnderTest) -> None:
    planned = events_of(lab.run("up", "--until", "helper", "--dry-run", "--json"))
    assert {entry["stage"] for entry in planned if entry["done"]} == {"release", "assets", "network", "helper"}


def test_status_tells_of_stages_and_machines(lab: LabUnderTest) -> None:
    status = json.loads(lab.run("status", "--json", code=1))
    assert {stage["name"]: stage["state"] for stage in status["stages"][:5]} == {
        "preflight": "passed",
        "release": "done",
        "assets": "done",
        "network": "done",
        "helper": "done",
    }
    power = {machine["name"]: machine["power"] for machine in status["machines"]}
    assert power["helper"] == power["bootstrap"] == "running"
    assert power["worker-0"] == "absent"


def test_what_somebody_changed_in_the_helper_is_put_right(lab: LabUnderTest) -> None:
    lab.inside("helper", "sh", "-c", "echo address=/api.lab.falsework.test/10.9.8.7 >>/etc/dnsmasq.conf")
    lab.inside("helper", "systemctl", "restart", "dnsmasq")
    assert "write /etc/dnsmasq.conf" in lab.run("up", "--until", "helper", "--dry-run")
    lab.run("up", "--until", "helper")
    assert dig(lab, f"api.{DOMAIN}") == ["192.168.126.2"]


def test_a_helper_that_lost_its_power_comes_back(lab: LabUnderTest) -> None:
    lab.run("machine", "kill", "helper")
    assert json.loads(lab.run("status", "--json", code=1).split("\nfalsework:")[0])["stages"][4]["state"] != "done"
    lab.run("up", "--until", "helper")
    assert dig(lab, f"api.{DOMAIN}") == ["192.168.126.2"]


# What the helper serves


def test_names_forward_reverse_wildcard_and_services(lab: LabUnderTest) -> None:
    assert dig(lab, f"api.{DOMAIN}", f"api-int.{DOMAIN}") == ["192.168.126.2"] * 2
    assert dig(lab, f"master-1.{DOMAIN}") == ["192.168.126.102"]
    assert dig(lab, "-x", "192.168.126.112") == [f"worker-1.{DOMAIN}."]
    assert dig(lab, f"any.thing.apps.{DOMAIN}") == ["192.168.126.2"]
    assert dig(lab, "SRV", f"_etcd-server-ssl._tcp.{DOMAIN}") == [f"0 10 2380 etcd-{n}.{DOMAIN}." for n in range(3)]
    assert dig(lab, f"nobody.{DOMAIN}") == []
    asked = ledger_with(lab, f"nobody.{DOMAIN}", "--service", "dns")
    assert not asked[-1]["got"]


def test_the_registry_gives_images_and_takes_none(lab: LabUnderTest, release: Release) -> None:
    image = release.images["pause"]
    name = image.tagged.partition("/")[2].partition(":")[0]
    authority = lab.lab.site_folder / "tls" / "root-ca.crt"
    url = f"https://helper.{DOMAIN}:5000/v2/{name}"
    curl = f"curl --silent --fail --cacert {authority} --header 'Accept: application/vnd.oci.image.manifest.v1+json'"
    manifest = json.loads(lab.run("shell", "-c", f"{curl} {url}/manifests/sha256:{image.digest}"))
    layer = manifest["layers"][0]["digest"]
    summed = lab.run("shell", "-c", f"{curl} {url}/blobs/{layer} | sha256sum").split()[0]
    assert f"sha256:{summed}" == layer
    refused = lab.run("shell", "-c", f"{curl} -X POST -o /dev/null -w '%{{http_code}}' {url}/blobs/uploads/ || true")
    assert refused == "405"


def test_a_node_pulls_from_the_registry_what_it_does_not_have(lab: LabUnderTest, release: Release) -> None:
    image = release.images["kubectl"].pinned
    lab.inside("bootstrap", "crictl", "rmi", image)
    assert image not in lab.inside("bootstrap", "crictl", "images", "--digests")
    lab.inside("bootstrap", "crictl", "pull", image)
    assert ledger_with(lab, "kubectl", "--service", "registry")


def test_strangers_find_only_open_what_should_be(lab: LabUnderTest) -> None:
    """Nothing listens there, and yet nobody says so: the firewall drops what it does not know."""
    connect = "echo </dev/tcp/192.168.126.2/12345"
    command = ("nsenter", f"--net={lab.lab.netns_path('bootstrap')}", "bash", "-c", connect)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, check=False, timeout=2, capture_output=True)


# Who gets which config


def test_a_machine_gets_its_own_config_and_only_while_it_is_expected(lab: LabUnderTest) -> None:
    base = "http://192.168.126.2:8080/ignition"
    curl = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}")
    before = len(lab.ledger("--service", "http"))
    assert lab.inside("bootstrap", *curl, f"{base}/machines/master-0.ign") == "403"
    # Its own, but it has booted.
    assert lab.inside("bootstrap", *curl, f"{base}/bootstrap.ign") == "403"
    entries = ledger_with(lab, "", "--service", "http", more_than=before + 1)[before:]
    assert [entry["machine"] for entry in entries] == ["bootstrap"] * 2
    assert all(entry["because"] for entry in entries)
    assert "master-0" in entries[0]["asked"]
    assert any(entry["got"].startswith("200") for entry in lab.ledger("--machine", "bootstrap", "--service", "http"))


def test_the_configs_are_closed_to_others_in_the_helper(lab: LabUnderTest) -> None:
    look = "setpriv --reuid=nobody --clear-groups cat /var/lib/falsework/ignition/bootstrap.ign"
    assert "ermission denied" in lab.inside("helper", "sh", "-c", f"{look} 2>&1 || true")


# Booting


def test_a_machine_waits_for_its_config_server_and_comes_up_by_itself(lab: LabUnderTest) -> None:
    lab.until("master-0", Power.RUNNING)
    expected = (lab.lab.site_folder / "tls/join/master-0.crt").read_bytes()
    assert base64.b64encode(expected).decode() in lab.inside("master-0", "cat", "/etc/kubernetes/kubeconfig")
    assert lab.inside("master-0", "hostname") == f"master-0.{DOMAIN}"
    assert lab.inside("master-0", "systemctl", "is-active", "containerd") == "active"
    assert "192.168.126.101/24" in lab.inside("master-0", "ip", "-br", "address", "show", "eth0")
    kinds = [(entry["service"], entry["asked"].split()[0]) for entry in lab.ledger("--machine", "master-0")]
    assert ("dhcp", "DHCPDISCOVER") in kinds
    assert any(service == "tftp" for service, _ in kinds)
    assert any(service == "http" for service, _ in kinds)
    given = [entry for entry in lab.ledger("--machine", "master-0", "--service", "mcs") if entry["got"]]
    assert given[-1]["got"].startswith("200, ")
    assert lab.inside("master-0", "systemctl", "is-active", "pod-guard") == "active"


def test_the_load_balancer_notices_who_is_off_and_who_is_back_from_its_disk(lab: LabUnderTest) -> None:
    def status() -> str:
        servers = json.loads(lab.run("balancer", "state", "--json"))
        return next(
            str(server["status"])
            for server in servers
            if (server["backend"], server["name"]) == ("machine-config-server", "bootstrap")
        )

    def until(wanted: str) -> None:
        deadline = time.monotonic() + 180
        while not status().startswith(wanted):
            assert time.monotonic() < deadline, status()
            time.sleep(0.1)

    until("UP")
    authority = lab.lab.site_folder / "tls" / "root-ca.crt"
    url = f"https://api-int.{DOMAIN}:22623/healthz"
    code = "--write-out '%{http_code}'"
    assert lab.run("shell", "-c", f"curl --silent --cacert {authority} {code} {url}") == "200"
    lab.run("balancer", "drain", "bootstrap", "--force")
    until("DRAIN")
    lab.run("balancer", "ready", "bootstrap")
    until("UP")
    lab.run("machine", "stop", "bootstrap", "--force")
    assert lab.machines.state("bootstrap").power is Power.OFF
    until("DOWN")
    # Off, it still has a disk with etcd's data on it.
    assert "the API cannot be asked" in lab.run("destroy", "bootstrap", code=1)
    lab.run("machine", "start", "bootstrap")
    assert "booting from disk" in lab.run("machine", "console", "bootstrap")
    assert lab.ledger("--machine", "bootstrap", "--service", "dhcp")
    until("UP")


def test_the_kubelet_of_a_booted_machine_is_healthy(lab: LabUnderTest) -> None:
    deadline = time.monotonic() + 180
    while lab.inside("bootstrap", "sh", "-c", "curl -s http://localhost:10248/healthz || true") != "ok":
        assert time.monotonic() < deadline, lab.inside("bootstrap", "journalctl", "-u", "kubelet", "-n", "30")
        time.sleep(0.1)


# Ways in


def test_ssh_with_the_key_from_ignition(lab: LabUnderTest) -> None:
    assert lab.run("ssh", "bootstrap", "--", "whoami; sudo id -u") == "core\n0\n"
    assert lab.run("ssh", f"helper.{DOMAIN}", "--", "hostname") == f"helper.{DOMAIN}\n"
    assert lab.run("ssh", "bootstrap", "--", "exit 7", code=7) == ""


def test_exec_gives_back_what_the_command_gives(lab: LabUnderTest) -> None:
    assert lab.run("exec", "bootstrap", "--", "cat", "/proc/1/comm") == "systemd\n"
    assert lab.run("machine", "exec", "bootstrap", "--", "hostname") == "bootstrap\n"
    lab.run("exec", "bootstrap", "--", "sh", "-c", "exit 9", code=9)
    assert "the site has helper, bootstrap" in lab.run("exec", "nobody", "--", "true", code=2)
    assert "falsework up" in lab.run("exec", "worker-0", "--", "true", code=1)


def test_the_programs_of_the_release_are_at_hand(lab: LabUnderTest) -> None:
    said = lab.run("shell", "-c", "kubectl version --client; crictl --version; etcdctl version; echo $KUBECONFIG")
    assert "v1.36" in said
    assert str(lab.lab.site_folder / "auth" / "kubeconfig") in said


def test_the_console_shows_every_step_with_times(lab: LabUnderTest) -> None:
    shown = lab.run("machine", "console", "bootstrap")
    steps = ["power on", "DHCP: ", "TFTP: ", "Ignition: ", "starting systemd", "systemd is up"]
    places = [shown.index(step) for step in steps]
    assert places == sorted(places)


def test_a_port_of_the_host_leads_to_the_load_balancer(lab: LabUnderTest) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    forwarding = lab.start("forward", "--port", str(port))
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        trusted = ssl.create_default_context(cafile=lab.lab.site_folder / "tls" / "kube-apiserver-lb-signer.crt")
        deadline = time.monotonic() + 180
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 5) as client:
                    trusted.wrap_socket(client, server_hostname=f"api.{DOMAIN}").close()
                break
            except OSError:
                # The API server may still be on its way.
                assert time.monotonic() < deadline
                time.sleep(0.3)
    finally:
        forwarding.terminate()
        forwarding.wait(60)


def test_a_second_lab_with_the_same_addresses_does_not_see_the_first(
    lab: LabUnderTest, beside_cache: Path, tmp_path: Path
) -> None:
    other = LabUnderTest.below(beside_cache / "lab-state", tmp_path)
    try:
        other.run("up", "--until", "helper")
        assert dig(other, f"api.{DOMAIN}") == ["192.168.126.2"]
        marks = {one.lab.id: one for one in (lab, other)}
        for name, one in marks.items():
            one.machines.write_file("helper", "/srv/falsework/which", name.encode())
        for name, one in marks.items():
            assert one.run("shell", "-c", "curl -s http://192.168.126.2:8080/which") == name
    finally:
        other.run("destroy", "--yes")
    assert dig(lab, f"api.{DOMAIN}") == ["192.168.126.2"]


def test_a_retired_bootstrap_is_gone_everywhere_and_stays_gone(lab: LabUnderTest) -> None:
    """Last: the lab has no bootstrap afterwards."""
    lab.until_ready()
    said = lab.run("destroy", "bootstrap", code=1)
    assert "EtcdBootstrapMemberRemoved is not True" in said
    assert "--force" in said
    started = "systemctl show -p ActiveEnterTimestampMonotonic --value haproxy dnsmasq"
    before = lab.inside("helper", "sh", "-c", started)
    assert dig(lab, f"bootstrap.{DOMAIN}") == ["192.168.126.100"]
    for _ in range(2):
        lab.run("destroy", "bootstrap", "--force")
    assert lab.inside("helper", "sh", "-c", started) == before
    assert "bootstrap" not in lab.run("balancer", "state")
    assert "bootstrap" not in lab.inside("helper", "cat", "/etc/haproxy/haproxy.cfg")
    assert not lab.lab.machine("bootstrap").exists()
    assert not lab.lab.netns_path("bootstrap").exists()
    assert dig(lab, f"api.{DOMAIN}") == ["192.168.126.2"]
    # The name server goes on answering for it until its lease has run out.
    assert "bootstrap" not in lab.inside("helper", "cat", "/etc/falsework/machines/names/site")
    planned = {entry["stage"]: entry for entry in events_of(lab.run("up", "--dry-run", "--json"))}
    assert all(planned[name]["done"] for name in ("network", "helper", "temporary-control-plane"))
    assert not any("bootstrap" in step for step in planned["bootstrap-machine"]["steps"])
    assert "there is no machine bootstrap" in lab.run("machine", "start", "bootstrap", code=2)
