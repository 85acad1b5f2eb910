"""The rules as a table: one good request of each kind, and every way to break it."""

from __future__ import annotations

import base64
import dataclasses
from ipaddress import ip_address

import pytest

from falsework.assets import join
from falsework.csr.pkcs10 import Asked, NotUnderstoodError
from falsework.csr.request import CLIENT_SIGNER, SERVING_SIGNER, Request
from falsework.csr.rules import Decision, Kind, Knowledge, KnownMachine, Why, judge
from falsework.site.model import Role

MASTER, WORKER, BOOTSTRAP = (f"{name}.lab.falsework.test" for name in ("master-0", "worker-0", "bootstrap"))
MACHINES = {
    MASTER: KnownMachine(Role.MASTER, ip_address("192.168.126.101")),
    WORKER: KnownMachine(Role.WORKER, ip_address("192.168.126.111")),
    BOOTSTRAP: KnownMachine(Role.BOOTSTRAP, ip_address("192.168.126.100")),
}
JOINING = Knowledge(MACHINES, lambda _: False, lambda _: None)
JOINED = Knowledge(MACHINES, lambda _: True, lambda _: "it has not")

CLIENT = Request(
    name="csr-1",
    uid="1",
    created="",
    signer=CLIENT_SIGNER,
    requester=f"system:join:{MASTER}",
    groups=(join.GROUP, f"{join.ROLE_GROUP_PREFIX}master", "system:authenticated"),
    usages=("digital signature", "client auth"),
    conditions=(),
    is_issued=False,
    encoded="",
)
SERVING = dataclasses.replace(
    CLIENT,
    signer=SERVING_SIGNER,
    requester=f"system:node:{MASTER}",
    groups=("system:nodes", "system:authenticated"),
    usages=("digital signature", "server auth"),
)
CLIENT_ASKS = Asked(f"system:node:{MASTER}", ("system:nodes",))
SERVING_ASKS = Asked(f"system:node:{MASTER}", ("system:nodes",), (MASTER,), (MACHINES[MASTER].address,))


def with_asked(request: Request, asked: Asked | NotUnderstoodError) -> Request:
    request = dataclasses.replace(request)
    request.__dict__["asked"] = asked
    return request


def client(asked: Asked | NotUnderstoodError = CLIENT_ASKS, **changes: object) -> Request:
    return with_asked(dataclasses.replace(CLIENT, **changes), asked)  # type: ignore[arg-type]


def serving(asked: Asked | NotUnderstoodError = SERVING_ASKS, **changes: object) -> Request:
    return with_asked(dataclasses.replace(SERVING, **changes), asked)  # type: ignore[arg-type]


def asks(asked: Asked, **changes: object) -> Asked:
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


def test_the_good_ones() -> None:
    verdict = judge(client(), JOINING)
    assert (verdict.kind, verdict.decision, verdict.machine) == (Kind.CLIENT, Decision.APPROVE, MASTER)
    with_rsa_key = client(usages=("key encipherment", "client auth", "digital signature"))
    assert judge(with_rsa_key, JOINING).decision is Decision.APPROVE
    verdict = judge(serving(), JOINED)
    assert (verdict.kind, verdict.decision, verdict.machine) == (Kind.SERVING, Decision.APPROVE, MASTER)


WAITING: list[tuple[Request, Why]] = [
    (client(requester="system:admin"), Why.REQUESTER),
    (client(requester=""), Why.REQUESTER),
    (client(requester=f"system:serviceaccount:a:{MASTER}"), Why.REQUESTER),
    (client(groups=()), Why.GROUPS),
    (client(groups=CLIENT.groups[:2]), Why.GROUPS),
    (client(groups=(*CLIENT.groups, "system:masters")), Why.GROUPS),
    (client(groups=(join.GROUP, f"{join.ROLE_GROUP_PREFIX}worker", "system:authenticated")), Why.ROLE),
    (client(groups=(*CLIENT.groups, f"{join.ROLE_GROUP_PREFIX}worker")), Why.ROLE),
    (client(usages=()), Why.USAGES),
    (client(usages=("client auth",)), Why.USAGES),
    (client(usages=(*CLIENT.usages, "server auth")), Why.USAGES),
    (client(usages=(*CLIENT.usages, "client auth")), Why.USAGES),
    (client(NotUnderstoodError("odd")), Why.NOT_UNDERSTOOD),
    (client(asks(CLIENT_ASKS, common_name=MASTER)), Why.COMMON_NAME),
    (client(asks(CLIENT_ASKS, common_name=f"SYSTEM:NODE:{MASTER}")), Why.COMMON_NAME),
    (client(asks(CLIENT_ASKS, organizations=())), Why.ORGANIZATION),
    (client(asks(CLIENT_ASKS, organizations=("system:nodes", "system:nodes"))), Why.ORGANIZATION),
    (client(asks(CLIENT_ASKS, organizations=("system:nodes", "system:masters"))), Why.ORGANIZATION),
    (client(asks(CLIENT_ASKS, dns=(MASTER,))), Why.NAMES),
    (client(asks(CLIENT_ASKS, addresses=(MACHINES[MASTER].address,))), Why.NAMES),
    (
        client(asks(CLIENT_ASKS, common_name="system:node:ghost"), requester="system:join:ghost"),
        Why.NO_MACHINE,
    ),
    (client(asks(CLIENT_ASKS, common_name="system:node:"), requester="system:join:"), Why.NO_MACHINE),
    (
        client(
            asks(CLIENT_ASKS, common_name=f"system:node:{BOOTSTRAP}"),
            requester=f"system:join:{BOOTSTRAP}",
            groups=(join.GROUP, f"{join.ROLE_GROUP_PREFIX}bootstrap", "system:authenticated"),
        ),
        Why.NOT_EXPECTED,
    ),
    (serving(requester="system:admin"), Why.REQUESTER),
    (serving(groups=("system:nodes",)), Why.GROUPS),
    (serving(groups=(*SERVING.groups, "system:masters")), Why.GROUPS),
    (serving(usages=("digital signature",)), Why.USAGES),
    (serving(usages=(*SERVING.usages, "client auth")), Why.USAGES),
    (serving(NotUnderstoodError("odd")), Why.NOT_UNDERSTOOD),
    (serving(asks(SERVING_ASKS, common_name=MASTER)), Why.COMMON_NAME),
    (serving(asks(SERVING_ASKS, organizations=("system:masters",))), Why.ORGANIZATION),
    (serving(asks(SERVING_ASKS, dns=())), Why.NAMES),
    (serving(asks(SERVING_ASKS, addresses=())), Why.NAMES),
    (serving(asks(SERVING_ASKS, dns=(MASTER, MASTER))), Why.NAMES),
    (serving(asks(SERVING_ASKS, dns=(MASTER, "api.lab.falsework.test"))), Why.NAMES),
    (serving(asks(SERVING_ASKS, dns=(MASTER.upper(),))), Why.NAMES),
    (serving(asks(SERVING_ASKS, dns=(f"*.{MASTER}",))), Why.NAMES),
    (serving(asks(SERVING_ASKS, addresses=(ip_address("127.0.0.1"),))), Why.NAMES),
    (serving(asks(SERVING_ASKS, common_name="system:node:ghost"), requester="system:node:ghost"), Why.NO_MACHINE),
]


@pytest.mark.parametrize(("request_", "why"), WAITING)
def test_what_breaks_a_rule_waits(request_: Request, why: Why) -> None:
    knowledge = JOINED if request_.signer == SERVING_SIGNER else JOINING
    verdict = judge(request_, knowledge)
    assert (verdict.decision, verdict.why) == (Decision.WAIT, why), verdict


@pytest.mark.parametrize(
    "request_",
    [
        client(asks(CLIENT_ASKS, common_name=f"system:node:{WORKER}")),
        client(asks(CLIENT_ASKS, common_name="system:node:ghost")),
        client(signer="kubernetes.io/kube-apiserver-client"),
        client(signer="example.com/own"),
        serving(requester=f"system:join:{MASTER}"),
        serving(asks(SERVING_ASKS, common_name=f"system:node:{WORKER}")),
        serving(asks(SERVING_ASKS, dns=(MASTER, WORKER))),
        serving(asks(SERVING_ASKS, addresses=(MACHINES[MASTER].address, MACHINES[BOOTSTRAP].address))),
        client(asks(CLIENT_ASKS, common_name=f"system:node:{WORKER}"), requester=f"system:node:{MASTER}"),
    ],
)
def test_what_is_certainly_forged_is_denied(request_: Request) -> None:
    verdict = judge(request_, JOINED)
    assert (verdict.decision, verdict.why) == (Decision.DENY, Why.FORGED), verdict


def test_what_the_cluster_says_counts() -> None:
    assert judge(client(), JOINED).why is Why.HAS_NODE
    assert judge(client(), dataclasses.replace(JOINING, not_fetched=lambda name: f"{name}!")).message == f"{MASTER}!"
    assert judge(serving(), JOINING).why is Why.NO_NODE


def test_what_is_others_business_is_left() -> None:
    renewal = client(requester=f"system:node:{MASTER}")
    assert (judge(renewal, JOINED).kind, judge(renewal, JOINED).decision) == (Kind.RENEWAL, Decision.LEAVE)
    assert judge(client(requester="someone", signer="example.com/own"), JOINED).decision is Decision.LEAVE
    assert judge(client(requester="someone", signer=""), JOINED).decision is Decision.LEAVE


def test_words_of_strangers_are_bounded_and_shown_safely() -> None:
    verdict = judge(client(requester="x\x1b[2J\n" + "y" * 5000), JOINING)
    assert len(verdict.message) < 500
    assert verdict.message.isprintable()


@pytest.mark.parametrize("body", [{}, {"metadata": None, "spec": None, "status": None}, {"spec": {"request": "%%%"}}])
def test_an_object_with_holes_is_nobodys(body: dict[str, object]) -> None:
    request = Request.of(body)
    assert isinstance(request.asked, NotUnderstoodError)
    assert judge(request, JOINED).decision is Decision.LEAVE
    assert not request.is_decided


def test_states_are_called_as_kubectl_calls_them() -> None:
    def state(*kinds: str, certificate: str = "") -> str:
        conditions = [{"type": kind, "status": "True"} for kind in kinds]
        return Request.of({"status": {"conditions": conditions, "certificate": certificate}}).state

    assert state() == "Pending"
    assert state("Approved") == "Approved"
    assert state("Approved", certificate=base64.b64encode(b"x").decode()) == "Approved,Issued"
    assert state("Denied") == "Denied"
    assert state("Approved", "Failed") == "Approved,Failed"
