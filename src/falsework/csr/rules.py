"""The rules: which certificate request is approved, which is denied, and why all others wait.

They know nothing of where they run, what a Node is made of or how a config is fetched: `Knowledge` tells them. What
costs nothing is looked at first; the request itself is read only when everything around it is right.

A request is denied where no honest program could have made it, so that nobody approves it by mistake:

- a machine's join credential asks for another machine's node name, or asks another signer than the kubelets';
- a node asks for a certificate, for itself to show to the API or to others, in another node's name;
- a node asks for a serving certificate with the name or the address of another machine of the site.

Everything else that is not right stays pending: it may become right (the Node is deleted, the config is fetched), or a
person knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from falsework.assets import join
from falsework.csr.pkcs10 import Asked, IPAddress
from falsework.csr.request import CLIENT_SIGNER, SERVING_SIGNER, Request
from falsework.site.model import Role

NODE_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"
AUTHENTICATED = "system:authenticated"

_CLIENT_USAGES = frozenset({"digital signature", "client auth"})
_SERVING_USAGES = frozenset({"digital signature", "server auth"})
_RSA_USAGE = "key encipherment"
"""What only an RSA key is used for; kubelets leave it out for others."""


class Kind(StrEnum):
    CLIENT = "client"
    """A machine becomes a node."""
    RENEWAL = "renewal"
    """A node asks for its own next client certificate: the controller manager approves those."""
    SERVING = "serving"
    OTHER = "other"


class Decision(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    WAIT = "wait"
    LEAVE = "leave"
    """Others decide about it."""


class Why(StrEnum):
    """Which rule decided, for programs."""

    RULES_MET = "RulesMet"
    NOT_OURS = "AnotherSigner"
    LEFT_TO_CONTROLLER = "LeftToControllerManager"
    REQUESTER = "WrongRequester"
    GROUPS = "WrongGroups"
    USAGES = "WrongUsages"
    NOT_UNDERSTOOD = "NotUnderstood"
    ORGANIZATION = "WrongOrganization"
    COMMON_NAME = "WrongCommonName"
    NAMES = "WrongNames"
    NO_MACHINE = "NoMachineOfThisSite"
    ROLE = "WrongRole"
    NOT_EXPECTED = "NotExpectedToJoin"
    HAS_NODE = "HasNodeAlready"
    NO_NODE = "HasNoNode"
    NOT_FETCHED = "ConfigNotFetched"
    FORGED = "Forged"


@dataclass(frozen=True)
class KnownMachine:
    role: Role
    address: IPAddress


@dataclass(frozen=True)
class Knowledge:
    machines: Mapping[str, KnownMachine]
    """The site's machines by their node names."""
    has_node: Callable[[str], bool]
    not_fetched: Callable[[str], str | None]
    """Why a machine counts as one that has not fetched its config, or None if it has."""


@dataclass(frozen=True)
class Verdict:
    kind: Kind
    decision: Decision
    why: Why
    message: str
    machine: str = ""
    """The node name it is about, as far as it could be told."""


class _Refusal(Exception):  # noqa: N818 - not an error: the answer of a rule
    def __init__(self, why: Why, message: str, decision: Decision = Decision.WAIT) -> None:
        super().__init__(message)
        self.why = why
        self.message = message
        self.decision = decision


def kind_of(request: Request) -> Kind:
    if request.signer == SERVING_SIGNER:
        return Kind.SERVING
    if request.signer == CLIENT_SIGNER:
        return Kind.RENEWAL if request.requester.startswith(NODE_PREFIX) else Kind.CLIENT
    return Kind.OTHER


def machine_of(request: Request) -> str:
    for prefix in (join.USER_PREFIX, NODE_PREFIX):
        if request.requester.startswith(prefix):
            return request.requester.removeprefix(prefix)
    return ""


def judge(request: Request, knowledge: Knowledge) -> Verdict:
    kind, machine = kind_of(request), machine_of(request)
    try:
        match kind:
            case Kind.CLIENT:
                message = _client(request, knowledge)
            case Kind.SERVING:
                message = _serving(request, knowledge)
            case Kind.RENEWAL:
                message = _renewal(request)
            case Kind.OTHER:
                message = _other(request)
    except _Refusal as refusal:
        return Verdict(kind, refusal.decision, refusal.why, refusal.message, machine)
    return Verdict(kind, Decision.APPROVE, Why.RULES_MET, message, machine)


def _client(request: Request, knowledge: Knowledge) -> str:
    if not request.requester.startswith(join.USER_PREFIX):
        raise _Refusal(Why.REQUESTER, f"{_shown(request.requester)} is no machine's join identity")
    node = request.requester.removeprefix(join.USER_PREFIX)
    asked = _read(request)
    if asked.common_name != NODE_PREFIX + node:
        name = _shown(asked.common_name)
        if asked.common_name.startswith(NODE_PREFIX):
            refusal = join.refusal(request.requester, (), asked.common_name.removeprefix(NODE_PREFIX), {})
            raise _Refusal(Why.FORGED, _shown(refusal or ""), Decision.DENY)
        raise _Refusal(Why.COMMON_NAME, f"the CN is {name}, not {NODE_PREFIX}{node}")
    machine = _machine(node, knowledge)
    _require_role(request, node, machine)
    _require_usages(request, _CLIENT_USAGES)
    if asked.organizations != (NODES_GROUP,):
        raise _Refusal(Why.ORGANIZATION, f"the O is {_listed(asked.organizations)}, not {NODES_GROUP}")
    if asked.dns or asked.addresses:
        raise _Refusal(Why.NAMES, f"a client certificate has no names, this asks for {_names(asked)}")
    if machine.role not in (Role.MASTER, Role.WORKER):
        raise _Refusal(Why.NOT_EXPECTED, f"{node} is the {machine.role}, which never becomes a node")
    if knowledge.has_node(node):
        raise _Refusal(
            Why.HAS_NODE, f"{node} has a Node already; if the machine was made anew, delete the Node and it may join"
        )
    if (reason := knowledge.not_fetched(node)) is not None:
        raise _Refusal(Why.NOT_FETCHED, reason)
    return f"{node} joins as {machine.role}"


def _serving(request: Request, knowledge: Knowledge) -> str:
    if not request.requester.startswith(NODE_PREFIX):
        if request.requester.startswith(join.USER_PREFIX):
            raise _Refusal(
                Why.FORGED,
                f"the join credential {_shown(request.requester)} asks for a serving certificate",
                Decision.DENY,
            )
        raise _Refusal(Why.REQUESTER, f"{_shown(request.requester)} is no node")
    _require_groups(request, {NODES_GROUP, AUTHENTICATED})
    _require_usages(request, _SERVING_USAGES)
    asked = _read(request)
    node = request.requester.removeprefix(NODE_PREFIX)
    _require_own_name(request, asked)
    if asked.organizations != (NODES_GROUP,):
        raise _Refusal(Why.ORGANIZATION, f"the O is {_listed(asked.organizations)}, not {NODES_GROUP}")
    machine = _machine(node, knowledge)
    if (asked.dns, asked.addresses) != ((node,), (machine.address,)):
        if other := _another_machines(asked, node, knowledge):
            raise _Refusal(Why.FORGED, f"{node} asks for a certificate with the {other}", Decision.DENY)
        raise _Refusal(Why.NAMES, f"the names are {_names(asked)}, not exactly {node} and {machine.address}")
    if not knowledge.has_node(node):
        raise _Refusal(Why.NO_NODE, f"{node} has no Node")
    return f"{node} serves as {node} and {machine.address}"


def _renewal(request: Request) -> str:
    _require_own_name(request, _read(request))
    raise _Refusal(
        Why.LEFT_TO_CONTROLLER, "a node renews its own certificate: kube-controller-manager decides", Decision.LEAVE
    )


def _other(request: Request) -> str:
    if request.requester.startswith(join.USER_PREFIX):
        raise _Refusal(
            Why.FORGED,
            f"the join credential {_shown(request.requester)} asks the signer {_shown(request.signer)}",
            Decision.DENY,
        )
    raise _Refusal(Why.NOT_OURS, f"{_shown(request.signer)} signs no kubelet's certificates", Decision.LEAVE)


# Single rules


def _read(request: Request) -> Asked:
    if isinstance(request.asked, Asked):
        return request.asked
    raise _Refusal(Why.NOT_UNDERSTOOD, f"the request cannot be read: {request.asked}")


def _require_usages(request: Request, needed: frozenset[str]) -> None:
    if len(set(request.usages)) != len(request.usages) or set(request.usages) - {_RSA_USAGE} != needed:
        raise _Refusal(Why.USAGES, f"the usages are {_listed(request.usages)}, not {_listed(sorted(needed))}")


def _require_groups(request: Request, needed: set[str]) -> None:
    """Exactly these: whoever is in more is somebody else."""
    if set(request.groups) != needed:
        raise _Refusal(Why.GROUPS, f"the groups are {_listed(request.groups)}, not {_listed(sorted(needed))}")


def _require_role(request: Request, node: str, machine: KnownMachine) -> None:
    """The credential is the one made for this machine in its role."""
    if reason := join.refusal(request.requester, request.groups, node, {node: machine.role}):
        claims_role = any(group.startswith(join.ROLE_GROUP_PREFIX) for group in request.groups)
        raise _Refusal(Why.ROLE if claims_role and join.GROUP in request.groups else Why.GROUPS, _shown(reason))
    _require_groups(request, {join.GROUP, f"{join.ROLE_GROUP_PREFIX}{machine.role}", AUTHENTICATED})


def _require_own_name(request: Request, asked: Asked) -> None:
    if asked.common_name == request.requester:
        return
    if asked.common_name.startswith(NODE_PREFIX):
        raise _Refusal(
            Why.FORGED, f"{_shown(request.requester)} asks in the name of {_shown(asked.common_name)}", Decision.DENY
        )
    raise _Refusal(Why.COMMON_NAME, f"the CN is {_shown(asked.common_name)}, not {_shown(request.requester)}")


def _machine(node: str, knowledge: Knowledge) -> KnownMachine:
    machine = knowledge.machines.get(node)
    if machine is None:
        raise _Refusal(Why.NO_MACHINE, f"{_shown(node)} is no machine of this site")
    return machine


def _another_machines(asked: Asked, node: str, knowledge: Knowledge) -> str | None:
    for name, machine in knowledge.machines.items():
        if name != node and name in asked.dns:
            return f"name of {name}"
        if name != node and machine.address in asked.addresses:
            return f"address of {name}"
    return None


# Words of strangers


def _shown(text: str) -> str:
    """Bounded, and only what can be shown: it goes into events, files and terminals."""
    clean = "".join(character if character.isprintable() else "?" for character in text[:300])
    return clean if len(text) <= 300 else clean + "…"


def _listed(texts: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(_shown(text) for text in texts[:8])
    return f"{shown}, …" if len(texts) > 8 else shown or "none"


def _names(asked: Asked) -> str:
    return _listed([*asked.dns, *map(str, asked.addresses)])
