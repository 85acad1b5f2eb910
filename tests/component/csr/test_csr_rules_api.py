"""The approver against a real API and a real signer: what is approved, and what each rule keeps out."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from approver_process import ApproverProcess, running
from cryptography import x509
from csr_maker import CLIENT_USAGES, SERVING_USAGES, request_pem, submit
from real_api import RealApi

from eventually import eventually
from falsework.assets import join
from falsework.assets.pki import Subject
from falsework.csr.request import CLIENT_SIGNER, SERVING_SIGNER
from falsework.kube.client import ApiError, Client
from falsework.kube.resources import CSRS, NODES
from falsework.site.model import Role

OTHER_SIGNER = "kubernetes.io/kube-apiserver-client"


@pytest.fixture(scope="module")
def process(real_api: RealApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApproverProcess]:
    with running(real_api, tmp_path_factory.mktemp("approver")) as process:
        yield process


@pytest.fixture
def approver(process: ApproverProcess) -> Iterator[ApproverProcess]:
    yield process
    process.remove_nodes_and_requests()
    process.serve_all()


def node_request(node: str, **others: object) -> bytes:
    return request_pem(f"system:node:{node}", **others)  # type: ignore[arg-type]


def client_request(approver: ApproverProcess, name: str) -> str:
    return submit(approver.joining(name), node_request(approver.node(name)), CLIENT_SIGNER, CLIENT_USAGES)


def serving_request(approver: ApproverProcess, name: str, client: Client | None = None) -> str:
    node, address = approver.node(name), str(approver.api.machine(name).address)
    pem = node_request(node, dns=[node], addresses=[address])
    return submit(client or approver.as_node(name), pem, SERVING_SIGNER, SERVING_USAGES)


def test_a_machine_becomes_a_node(approver: ApproverProcess) -> None:
    """Both certificates, issued."""
    name = client_request(approver, "master-0")
    eventually(lambda: "Approved" in approver.conditions(name))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(approver.wait_for_certificate(name)))
    assert "system:node:master-0" in certificate.subject.rfc4514_string()
    assert "joins as master" in approver.conditions(name)["Approved"]
    approver.make_node("master-0")
    serving = serving_request(approver, "master-0")
    approver.wait_for_certificate(serving)
    eventually(lambda: (approver.decision(serving) or {}).get("state") == "Approved,Issued")
    # A second one in its name: whoever has the credential now comes too late.
    again = client_request(approver, "master-0")
    assert_waits(approver, again, "HasNodeAlready", "has a Node already")
    # Unless a person says that the machine was made anew.
    approver.admin.delete(NODES, approver.node("master-0"))
    approver.wait_for_certificate(again)


def test_a_serving_request_before_its_node_waits_for_it(approver: ApproverProcess) -> None:
    name = serving_request(approver, "master-1")
    assert_waits(approver, name, "HasNoNode", "has no Node")
    approver.make_node("master-1")
    approver.wait_for_certificate(name)


def test_a_request_before_the_config_was_fetched_waits_for_that(approver: ApproverProcess) -> None:
    node = approver.node("master-2")
    approver.set_served(node, boot="an earlier one")
    name = client_request(approver, "master-2")
    assert_waits(approver, name, "ConfigNotFetched", "only before that")
    approver.set_served()
    assert_waits(approver, name, "ConfigNotFetched", "has not fetched its config")
    approver.serve_all()
    approver.wait_for_certificate(name)


def joins(subject_node: str, *groups: str) -> Subject:
    return Subject(f"{join.USER_PREFIX}{subject_node}", groups)


_machines = itertools.cycle(["master-0", "master-1", "master-2", "worker-0", "worker-1"])
Asking = Callable[[ApproverProcess], str]


def client_by(subject: Callable[[ApproverProcess], Subject], machine: str = "master-0") -> Asking:
    return lambda approver: submit(
        approver.as_subject(subject(approver)), node_request(approver.node(machine)), CLIENT_SIGNER, CLIENT_USAGES
    )


def client_with(usages: tuple[str, ...] = CLIENT_USAGES, **others: object) -> Asking:
    """From one machine after the other: of each, only a few events are told."""
    machine = next(_machines)
    return lambda approver: submit(
        approver.joining(machine), node_request(approver.node(machine), **others), CLIENT_SIGNER, usages
    )


def serving_with(
    usages: tuple[str, ...] = SERVING_USAGES,
    dns: tuple[str, ...] = (),
    addresses: tuple[str, ...] = (),
    **others: object,
) -> Asking:
    def ask(approver: ApproverProcess) -> str:
        approver.make_node("master-1")
        node = approver.node("master-1")
        own = str(approver.api.machine("master-1").address)
        pem = node_request(node, dns=dns or (node,), addresses=addresses or (own,), **others)
        return submit(approver.as_node("master-1"), pem, SERVING_SIGNER, usages)

    return ask


def bootstrap_asks(approver: ApproverProcess) -> str:
    node = approver.node("bootstrap")
    client = approver.as_subject(joins(node, join.GROUP, f"{join.ROLE_GROUP_PREFIX}bootstrap"))
    return submit(client, node_request(node), CLIENT_SIGNER, CLIENT_USAGES)


def stranger_serves(approver: ApproverProcess) -> str:
    approver.make_node("master-1")
    return serving_request(approver, "master-1", approver.as_subject(Subject("someone", ("system:nodes",))))


def node_without_group(approver: ApproverProcess) -> str:
    approver.make_node("master-1")
    subject = Subject(f"system:node:{approver.node('master-1')}", ("others",))
    return serving_request(approver, "master-1", approver.as_subject(subject))


def unknown_node_serves(approver: ApproverProcess) -> str:
    name = "ghost.lab.falsework.test"
    client = approver.as_subject(Subject(f"system:node:{name}", ("system:nodes",)), "kubelet-signer")
    pem = node_request(name, dns=[name], addresses=["192.168.126.250"])
    return submit(client, pem, SERVING_SIGNER, SERVING_USAGES)


def unfinished(approver: ApproverProcess) -> str:
    """Everything right, but the machine has not asked for its config."""
    approver.set_served(approver.node("master-1"))
    return client_request(approver, "master-0")


BROKEN: dict[str, tuple[Asking, str, str]] = {
    "no join identity": (
        client_by(lambda _: Subject("someone", (join.GROUP, f"{join.ROLE_GROUP_PREFIX}master"))),
        "WrongRequester",
        "someone is no machine's join identity",
    ),
    "without the group": (
        client_by(lambda a: joins(a.node("master-0"), f"{join.ROLE_GROUP_PREFIX}master")),
        "WrongGroups",
        "is not in the group system:bootstrappers",
    ),
    "in one group more": (
        client_by(lambda a: joins(a.node("master-0"), join.GROUP, f"{join.ROLE_GROUP_PREFIX}master", "more")),
        "WrongGroups",
        "the groups are",
    ),
    "as another role": (
        client_by(lambda a: joins(a.node("master-0"), join.GROUP, f"{join.ROLE_GROUP_PREFIX}worker")),
        "WrongRole",
        "is a master, its join credential is for worker",
    ),
    "as no role": (client_by(lambda a: joins(a.node("master-0"), join.GROUP)), "WrongGroups", "for no role"),
    "no machine of the site": (
        lambda a: submit(
            a.as_subject(join.subject_for("ghost.lab.falsework.test", Role.MASTER)),
            node_request("ghost.lab.falsework.test"),
            CLIENT_SIGNER,
            CLIENT_USAGES,
        ),
        "NoMachineOfThisSite",
        "ghost.lab.falsework.test is no machine of this site",
    ),
    "the bootstrap": (bootstrap_asks, "NotExpectedToJoin", "never becomes a node"),
    "one usage more": (client_with((*CLIENT_USAGES, "server auth")), "WrongUsages", "server auth"),
    "one usage less": (client_with(("client auth",)), "WrongUsages", "the usages are client auth"),
    "another organization": (client_with(organizations=["system:masters"]), "WrongOrganization", "system:masters"),
    "one organization more": (
        client_with(organizations=["system:nodes", "system:masters"]),
        "WrongOrganization",
        "system:nodes, system:masters",
    ),
    "no organization": (client_with(organizations=[]), "WrongOrganization", "none"),
    "a name": (client_with(dns=["master-0.lab.falsework.test"]), "WrongNames", "has no names"),
    "an address": (client_with(addresses=["192.168.126.11"]), "WrongNames", "has no names"),
    "an extension": (
        client_with(extensions=[x509.BasicConstraints(ca=True, path_length=None)]),
        "NotUnderstood",
        "an extension no kubelet asks for",
    ),
    "not a node's name": (
        lambda a: submit(a.joining("worker-1"), request_pem("master-0"), CLIENT_SIGNER, CLIENT_USAGES),
        "WrongCommonName",
        "the CN is master-0",
    ),
    "not fetched": (unfinished, "ConfigNotFetched", "has not fetched its config"),
    "serving: no node": (stranger_serves, "WrongRequester", "someone is no node"),
    "serving: without the group": (node_without_group, "WrongGroups", "the groups are others"),
    "serving: unknown": (unknown_node_serves, "NoMachineOfThisSite", "is no machine of this site"),
    "serving: one usage more": (serving_with((*SERVING_USAGES, "client auth")), "WrongUsages", "client auth"),
    "serving: one name more": (
        serving_with(dns=("master-1.lab.falsework.test", "api.lab.falsework.test")),
        "WrongNames",
        "api.lab.falsework.test",
    ),
    "serving: only another name": (serving_with(dns=("else.example",)), "WrongNames", "else.example"),
    "serving: another address": (serving_with(addresses=("10.1.2.3",)), "WrongNames", "10.1.2.3"),
    "serving: another organization": (
        serving_with(organizations=["system:masters"]),
        "WrongOrganization",
        "system:masters",
    ),
}

FORGED: dict[str, tuple[Asking, str]] = {
    "another machine's name": (
        lambda a: submit(a.joining("worker-0"), node_request(a.node("master-0")), CLIENT_SIGNER, CLIENT_USAGES),
        "the join credential of worker-0.lab.falsework.test asks for the node name master-0.lab.falsework.test",
    ),
    "another signer": (
        lambda a: submit(a.joining("worker-0"), request_pem("admin", ["admins"]), OTHER_SIGNER, CLIENT_USAGES),
        f"asks the signer {OTHER_SIGNER}",
    ),
    "a serving certificate before it is a node": (
        lambda a: serving_request(a, "worker-0", a.joining("worker-0")),
        "asks for a serving certificate",
    ),
    "serving with another machine's name": (
        serving_with(dns=("master-1.lab.falsework.test", "master-2.lab.falsework.test")),
        "with the name of master-2",
    ),
    "serving with another machine's address": (
        serving_with(addresses=("192.168.126.103",)),
        "with the address of master-2",
    ),
}


def assert_waits(approver: ApproverProcess, name: str, reason: str, words: str) -> None:
    eventually(lambda: (approver.decision(name) or {}).get("reason") == reason)
    decision = approver.decision(name)
    assert decision is not None
    assert decision["decision"] == "wait"
    eventually(lambda: words in (approver.decision(name) or {}).get("message", ""))
    assert approver.conditions(name) == {}
    eventually(lambda: any(event["reason"] == reason for event in approver.events_about(name)))
    # In the sense of the seeds' commands: it has no status at all.
    assert not approver.admin.get(CSRS, name).get("status")


@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_one_rule_waits(approver: ApproverProcess, case: str) -> None:
    ask, reason, words = BROKEN[case]
    name = ask(approver)
    eventually(lambda: approver.decision(name) is not None)
    decision = approver.decision(name)
    assert decision is not None
    assert (decision["decision"], decision["reason"]) == ("wait", reason), decision
    assert words in decision["message"]
    eventually(lambda: [event["reason"] for event in approver.events_about(name)] == [reason])
    assert approver.conditions(name) == {}


@pytest.mark.parametrize("case", FORGED)
def test_what_no_honest_program_asks_is_denied(approver: ApproverProcess, case: str) -> None:
    ask, words = FORGED[case]
    name = ask(approver)
    eventually(lambda: "Denied" in approver.conditions(name))
    assert words in approver.conditions(name)["Denied"]
    eventually(lambda: (approver.decision(name) or {}).get("state") == "Denied")


def test_renewals_are_left_to_the_controller_manager(approver: ApproverProcess) -> None:
    approver.make_node("master-0")
    name = submit(approver.as_node("master-0"), node_request(approver.node("master-0")), CLIENT_SIGNER, CLIENT_USAGES)
    approver.wait_for_certificate(name)
    assert "Falsework" not in approver.conditions(name)["Approved"]
    eventually(lambda: (approver.decision(name) or {}).get("kind") == "renewal")


def test_others_business_is_left_alone(approver: ApproverProcess) -> None:
    name = submit(approver.admin, request_pem("someone", ["some"]), OTHER_SIGNER, CLIENT_USAGES)
    eventually(lambda: (approver.decision(name) or {}).get("decision") == "leave")
    assert approver.events_about(name) == []


def test_a_person_may_still_approve(approver: ApproverProcess) -> None:
    """What `oc adm certificate approve` writes."""
    name = submit(
        approver.joining("master-0"),
        node_request(approver.node("master-0")),
        CLIENT_SIGNER,
        (*CLIENT_USAGES, "key encipherment", "data encipherment"),
    )
    eventually(lambda: approver.decision(name) is not None)
    body = approver.admin.get(CSRS, name)
    condition = {"type": "Approved", "status": "True", "reason": "KubectlApprove", "message": "by hand"}
    approver.admin.replace(CSRS, {**body, "status": {"conditions": [condition]}}, "approval")
    eventually(lambda: (approver.decision(name) or {}).get("reason") == "KubectlApprove")


def test_a_request_that_is_gone_is_forgotten(approver: ApproverProcess) -> None:
    name = submit(approver.joining("master-0"), request_pem("nobody"), CLIENT_SIGNER, CLIENT_USAGES)
    eventually(lambda: approver.decision(name) is not None)
    approver.admin.delete(CSRS, name)
    eventually(lambda: approver.decision(name) is None)


@pytest.mark.parametrize(
    "ask",
    [
        lambda a: submit(a.joining("worker-0"), request_pem("admin", ["system:masters"]), OTHER_SIGNER, CLIENT_USAGES),
        lambda a: submit(a.as_node("worker-0"), node_request(a.node("master-0")), CLIENT_SIGNER, CLIENT_USAGES),
        lambda a: serving_request(a, "master-0", a.as_node("worker-0")),
    ],
)
def test_what_the_api_server_itself_refuses(approver: ApproverProcess, ask: Asking) -> None:
    """If it did not, the rules would deny it."""
    with pytest.raises(ApiError) as caught:
        ask(approver)
    assert caught.value.status == 403


def test_what_it_says_and_records(process: ApproverProcess, tmp_path: Path) -> None:
    assert "until bootstrapping is complete..." in process.output
    assert json.loads(json.dumps(process.records()))[0]["phase"] == "service start"
    assert "PRIVATE KEY" not in process.output
