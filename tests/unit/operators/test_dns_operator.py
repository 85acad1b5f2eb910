"""What the cluster's DNS is to be, what is made of it, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from falsework.errors import FalseworkError
from falsework.kube.client import Object
from falsework.operators.dns.conditions import conditions_of
from falsework.operators.dns.corefile import corefile
from falsework.operators.dns.objects import cluster_address, daemon_set, service
from falsework.operators.dns.settings import Forwarding, settings_of
from falsework.operators.runtime.conditions import status_of

PLAIN = """\
.:5353 {
    bufsize 1232
    errors
    log . {
        class error
    }
    cache 900 {
        denial 9984 30
    }
    health {
        lameduck 20s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus 127.0.0.1:9153
    forward . /etc/resolv.conf {
        policy sequential
    }
    reload
}
hostname.bind:5353 {
    chaos
}
"""


def dns(**spec: Any) -> Object:
    return {"spec": spec}


def server(name: str = "corp", zones: tuple[str, ...] = ("corp.example",), **plugin: Any) -> Object:
    return {"name": name, "zones": list(zones), "forwardPlugin": {"upstreams": ["192.0.2.1"], **plugin}}


def test_what_is_not_the_clusters_own_is_asked_of_the_node() -> None:
    assert corefile(settings_of({})) == PLAIN


def test_zones_of_others_come_before_everything_else() -> None:
    wanted = dns(
        servers=[server(zones=("Corp.Example.", "corp.test"), upstreams=["192.0.2.1", "[2001:db8::1]:5300"])],
        cache={"positiveTTL": "1m30s", "negativeTTL": "10s"},
        logLevel="Debug",
    )
    text = corefile(settings_of(wanted))
    assert text.startswith("# corp\ncorp.example:5353 corp.test:5353 {\n")
    assert "    forward . 192.0.2.1:53 [2001:db8::1]:5300 {\n        policy random\n    }\n" in text
    assert text.count("cache 90 {\n        denial 9984 10\n") == text.count("class denial error") == 2


def test_all_other_names_can_be_asked_of_somebody_named() -> None:
    upstreams = [{"type": "Network", "address": "2001:db8::1", "port": 5300}, {"type": "SystemResolvConf"}]
    resolvers = {"policy": "RoundRobin", "protocolStrategy": "TCP", "upstreams": upstreams}
    settings = settings_of(dns(upstreamResolvers=resolvers))
    assert settings.forwarding == Forwarding(("[2001:db8::1]:5300", "/etc/resolv.conf"), "round_robin", by_tcp=True)
    assert "force_tcp" in corefile(settings)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"servers": [server(name="a }\nb {")]}, "is no name"),
        ({"servers": [server(zones=())]}, "has no zones"),
        ({"servers": [server(zones=("a b",))]}, "'a b' is no zone"),
        ({"servers": [server(zones=("svc.cluster.local",))]}, "is the cluster's own"),
        ({"servers": [server(), server("other", ("CORP.example.",))]}, "twice in it: in corp and in other"),
        ({"servers": [server(upstreams=[])]}, "needs 1 to 15 upstreams"),
        ({"servers": [server(upstreams=["ns.example"])]}, "'ns.example' is no upstream"),
        ({"servers": [server(upstreams=["192.0.2.1:99999"])]}, "is no upstream"),
        ({"servers": [server(policy="Best")]}, "Best is no policy"),
        ({"servers": [server(transportConfig={"transport": "TLS"})]}, "asks for TLS"),
        ({"upstreamResolvers": {"upstreams": [{"type": "Network"}]}}, "is no address"),
        ({"upstreamResolvers": {"upstreams": [{"type": "Carrier"}]}}, "Carrier is no type"),
        ({"cache": {"positiveTTL": "long"}}, "long is no duration"),
    ],
)
def test_mistakes_are_said_and_never_written_down(spec: Object, what: str) -> None:
    with pytest.raises(FalseworkError, match=what):
        settings_of({"spec": spec})


def test_the_service_has_the_tenth_address() -> None:
    assert cluster_address("172.30.0.0/16") == "172.30.0.10"
    assert cluster_address("fd02::/112") == "fd02::a"
    spec = service("172.30.0.10")["spec"]
    assert [(port["port"], port["protocol"]) for port in spec["ports"]] == [(53, "UDP"), (53, "TCP")]


def test_pods_are_on_masters_too_unless_somebody_says_where() -> None:
    url = "https://api-int.lab.example:6443"
    pod = daemon_set("coredns:1", url, {})["spec"]["template"]["spec"]
    assert {"key": "node-role.kubernetes.io/master", "operator": "Exists"} in pod["tolerations"]
    assert pod["containers"][0]["env"][0]["value"] == "api-int.lab.example"
    placed = daemon_set("coredns:1", url, {"nodeSelector": {"dns": "here"}})["spec"]["template"]["spec"]
    assert placed["nodeSelector"] == {"dns": "here"}


def rolled(wanted: int, available: int, updated: int | None = None, seen: int = 2) -> Object:
    counts = {"desiredNumberScheduled": wanted, "numberAvailable": available}
    status = counts | {"updatedNumberScheduled": available if updated is None else updated, "observedGeneration": seen}
    return {"metadata": {"generation": 2}, "status": status}


@pytest.mark.parametrize(
    ("found", "address", "words", "message"),
    [
        (rolled(5, 5), "172.30.0.10", (True, False, False), "All DNS pods are available"),
        (rolled(5, 4), "172.30.0.10", (True, True, False), "Have 4 available DNS pods, want 5."),
        (rolled(5, 5, 3), "172.30.0.10", (True, True, False), "Have 3 up-to-date DNS pods, want 5."),
        (rolled(5, 5, seen=1), "172.30.0.10", (True, True, False), "Have 0 up-to-date DNS pods, want 5."),
        (rolled(5, 3), "172.30.0.10", (True, True, True), "Have 3 available DNS pods, want 5."),
        (rolled(5, 0), "172.30.0.10", (False, True, True), "Have 0 available DNS pods, want 5."),
        (rolled(0, 0), "172.30.0.10", (False, True, True), "Have 0 up-to-date DNS pods, want 0."),
        (rolled(5, 5), "", (False, True, True), "No IP address is assigned to the DNS service."),
        (None, "", (False, True, True), "The DNS daemonset does not exist."),
    ],
)
def test_it_says_how_it_is(found: Object | None, address: str, words: tuple[bool, bool, bool], message: str) -> None:
    said = conditions_of(found, address)
    assert tuple(status_of(said, kind) for kind in ("Available", "Progressing", "Degraded")) == words
    assert message in said[1]["message"]
