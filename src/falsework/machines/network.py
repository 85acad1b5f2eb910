"""The lab's network: namespaces joined by a bridge that is in a namespace too. Nothing of it is in the host's own.

    fw-….helper       fw-….master-0             fw-…._network
      eth0 ─────────────  eth0 ───────────────►   p525400…  p525400…   ports of
                                                  └── bridge, with the gateway's address ── nat0 (if the site wants it)

What is there is looked up, what is missing is made, and what was about to be made is in the journal. A re-run repairs.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.host import packages
from falsework.lab.folder import NETWORK, Lab
from falsework.lab.journal import Journal, Thing
from falsework.machines import namespaces, nat, netns_folder
from falsework.machines.namespaces import FOLDER, is_namespace
from falsework.machines.settings import INTERFACE
from falsework.process import CommandError, run
from falsework.site.model import Helper, Machine, Provider, Site
from falsework.site.records import everyone

KIND = "netns"
_MTU = 1500
_TRIES = 4
_PROC = Path("/proc/sys")


@dataclass(frozen=True)
class Link:
    """A network interface, as `ip -json` tells of it."""

    name: str
    index: int
    kind: str
    mac: str
    up: bool
    mtu: int
    master: str
    peer_index: int
    addresses: frozenset[str]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Link:
        return cls(
            name=data["ifname"],
            index=data["ifindex"],
            kind=data.get("linkinfo", {}).get("info_kind", ""),
            mac=data.get("address", ""),
            up="UP" in data["flags"],
            mtu=data["mtu"],
            master=data.get("master", ""),
            peer_index=data.get("link_index", 0),
            addresses=frozenset(
                f"{entry['local']}/{entry['prefixlen']}" for entry in data["addr_info"] if entry["family"] == "inet"
            ),
        )


Links = Mapping[str, Link]


@dataclass(frozen=True)
class Facts:
    """What there is of a lab's network."""

    links: Mapping[str, Links] = field(default_factory=dict)
    """By the name of the machine (or NETWORK) whose namespace they are in; those that have one."""
    broken: frozenset[str] = frozenset()
    """Names that stand for no namespace: their making was cut short."""
    settings: Mapping[str, str | None] = field(default_factory=dict)
    """Of the lab's own namespace; None for those this kernel does not have."""


@dataclass(frozen=True)
class Step:
    """Something that is missing, and what makes it."""

    what: str
    namespace: str = ""
    """The one to be made, by the name of its machine."""
    settings: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By machine: what `ip` has to do in its namespace."""
    loose: str = ""
    """The machine with an end of a cable that leads nowhere; it has to go before a new one comes."""


class Network:
    def __init__(self, site: Site, lab: Lab, journal: Journal, report: Callable[[str], None] = lambda _: None) -> None:
        """`report` is told, in a sentence, when something takes longer, such as a package that has to be installed."""
        self._site = site
        self._lab = lab
        self._journal = journal
        self._report = report
        self._nat = nat.Nat(site, lab, journal)

    def plan(self) -> list[str]:
        """What `build` would do now."""
        if not machines_of(self._site):
            return []
        facts = look(self._lab)
        return [step.what for step in steps(self._site, self._lab, facts)] + self._nat.plan(tap_of(facts))

    def build(self) -> list[str]:
        """Make what is missing; return what that was."""
        if not machines_of(self._site):
            return []
        packages.ensure(["ip", *(nat.PROGRAMS if self._site.lab.nat else ())], self._report)
        done: list[str] = []
        for attempt in range(_TRIES):
            facts = look(self._lab)
            missing = steps(self._site, self._lab, facts)
            if not missing:
                return done + self._nat.build(tap_of(facts))
            try:
                self._make(missing)
            except CommandError:
                # A link goes some milliseconds after the namespace its other end was in: what was just looked up may
                # be gone by now.
                if attempt == _TRIES - 1:
                    raise
                time.sleep(0.05 * (attempt + 1))
            else:
                done += [step.what for step in missing]
        raise FalseworkError(
            f"the network of {self._lab.id} does not stay as it is made",
            cause=f"still missing: {'; '.join(step.what for step in missing)}",
            fix="look for another program that changes network namespaces, then run the same command again",
        )

    def surplus(self) -> list[str]:
        """Machines that have a namespace here and are not in the site any more."""
        wanted = {NETWORK, *(machine.name for machine in machines_of(self._site))}
        return sorted(name for name in _names(self._lab) if name not in wanted)

    def _make(self, missing: Sequence[Step]) -> None:
        if created := [step.namespace for step in missing if step.namespace]:
            netns_folder.ensure(self._journal)
            for name in created:
                self._journal.creating(KIND, self._lab.netns(name))
                if not is_namespace(self._lab.netns_path(name)):
                    self._lab.netns_path(name).unlink(missing_ok=True)
            _ip((), [f"netns add {self._lab.netns(name)}" for name in created])
        settings = {name: value for step in missing for name, value in step.settings.items()}
        if settings:
            # Before there are links: new ones take over what is set as the default.
            namespaces.inside(self._lab.netns_path(NETWORK), lambda: _write(settings))
        lines: dict[str, list[str]] = {}
        for step in missing:
            for name, words in step.lines.items():
                lines.setdefault(name, []).extend(words)
        for name in (step.loose for step in missing if step.loose):
            _ip(("-netns", self._lab.netns(name)), [f"link delete {INTERFACE}"])
        # The lab's own first: it makes both ends of every cable.
        if NETWORK in lines:
            _ip(("-netns", self._lab.netns(NETWORK)), lines.pop(NETWORK))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda item: _ip(("-netns", self._lab.netns(item[0])), item[1]), lines.items()))


def remove_netns(thing: Thing) -> None:
    """For a namespace in the journal. Its links go with it."""
    namespaces.remove(FOLDER / thing.name)


def machines_of(site: Site) -> list[Machine | Helper]:
    """Those that have a namespace here."""
    return [machine for machine in everyone(site) if machine.provider is Provider.NSPAWN]


def port_of(machine: Machine | Helper) -> str:
    """The bridge's end of a machine's cable."""
    return f"p{machine.mac.replace(':', '')}"


def look(lab: Lab) -> Facts:
    present = {name: is_namespace(lab.netns_path(name)) for name in _names(lab)}
    whole = [name for name, is_whole in present.items() if is_whole]
    with ThreadPoolExecutor(2) as pool:
        links = dict(zip(whole, pool.map(lambda name: _links(lab, name), whole), strict=True))
    settings: dict[str, str | None] = {}
    if NETWORK in links:
        settings = namespaces.inside(lab.netns_path(NETWORK), _read)
    return Facts(links, frozenset(name for name, is_whole in present.items() if not is_whole), settings)


def tap_of(facts: Facts) -> bool:
    """Whether the lab's way out is there: the link lives only as long as the process that holds it."""
    link = facts.links.get(NETWORK, {}).get(nat.TAP)
    return link is not None and link.up and bool(link.addresses)


def steps(site: Site, lab: Lab, facts: Facts) -> list[Step]:
    """What is missing for the site, in the order of making. Decides only, does nothing."""
    machines = machines_of(site)
    found: list[Step] = []
    for name in (NETWORK, *(machine.name for machine in machines)):
        up = {name: ("link set lo up",)}
        if name not in facts.links:
            found.append(Step(f"network namespace {lab.netns(name)}", namespace=name, lines=up))
        elif not facts.links[name]["lo"].up:
            found.append(Step(f"loopback of {lab.netns(name)}", lines=up))
    ours = facts.links.get(NETWORK, {})
    found += _settings_steps(site, facts)
    found += _bridge_steps(site, lab, ours)
    for machine in machines:
        found += _cable_steps(site, lab, machine, ours, facts.links.get(machine.name, {}))
    return found


def _settings_steps(site: Site, facts: Facts) -> Iterable[Step]:
    wanted = _wanted_settings(site.lab.nat)
    # In a namespace that is still to be made every one may have to be set.
    known = facts.settings or dict.fromkeys(wanted, "")
    wrong = {name: value for name, value in wanted.items() if known.get(name) is not None and known.get(name) != value}
    if wrong:
        yield Step("the lab's own settings: " + ", ".join(Path(name).name for name in wrong), settings=wrong)


def _wanted_settings(forwarding: bool) -> dict[str, str]:
    return {
        "net/ipv4/ip_forward": "1" if forwarding else "0",
        # Nobody here announces routes, and nobody who did should be believed.
        "net/ipv6/conf/default/accept_ra": "0",
        # No link-local address on the bridge and its ports.
        "net/ipv6/conf/default/addr_gen_mode": "1",
        # What machines say to each other is theirs to filter.
        "net/bridge/bridge-nf-call-iptables": "0",
        "net/bridge/bridge-nf-call-ip6tables": "0",
        "net/bridge/bridge-nf-call-arptables": "0",
    }


def _bridge_steps(site: Site, lab: Lab, ours: Links) -> Iterable[Step]:
    name = site.lab.name
    address = f"{site.lab.gateway}/{site.lab.cidr.prefixlen}"
    for link in ours.values():
        if link.kind == "bridge" and link.name != name:
            # Of the site as it was; the same address must not be there twice.
            yield Step(f"without the bridge {link.name}", lines={NETWORK: (f"link delete {link.name}",)})
    bridge = ours.get(name)
    lines: list[str] = []
    if bridge is None:
        # No waiting for ports that might make a loop: none can. An address of its own: otherwise it would be that of
        # one of its ports, and another one with every machine that comes or goes.
        options = "stp_state 0 forward_delay 0 mcast_snooping 0"
        lines.append(f"link add {name} address {_bridge_mac(lab)} mtu {_MTU} type bridge {options}")
    if bridge is None or not bridge.up:
        lines.append(f"link set {name} up")
    if bridge is None or bridge.addresses != {address}:
        lines += [f"address flush dev {name} scope global"] if bridge else []
        lines.append(f"address add {address} dev {name}")
    if lines:
        yield Step(f"bridge {name} with {address}", lines={NETWORK: tuple(lines)})


def _bridge_mac(lab: Lab) -> str:
    digest = hashlib.sha256(lab.id.encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


def _cable_steps(site: Site, lab: Lab, machine: Machine | Helper, ours: Links, theirs: Links) -> Iterable[Step]:
    port_name = port_of(machine)
    port, end = ours.get(port_name), theirs.get(INTERFACE)
    there: list[str] = []
    joined = port and end and (port.peer_index, end.peer_index) == (end.index, port.index)
    if not joined:
        # One end of a cable goes with the other.
        here = [f"link delete {port_name}"] if port else []
        if end:
            yield Step(f"without the loose {INTERFACE} of {machine.name}", loose=machine.name)
        here += [
            f"link add {port_name} mtu {_MTU} type veth peer name {INTERFACE} mtu {_MTU} address {machine.mac} "
            f"netns {lab.netns(machine.name)}",
            f"link set {port_name} master {site.lab.name} up",
        ]
        there = [f"link set {INTERFACE} up"]
    else:
        assert port is not None
        assert end is not None
        here = [] if port.up and port.master == site.lab.name else [f"link set {port_name} master {site.lab.name} up"]
        if end.mac != machine.mac:
            there += [f"link set {INTERFACE} down", f"link set {INTERFACE} address {machine.mac}"]
        if there or not end.up:
            there.append(f"link set {INTERFACE} up")
    if here or there:
        lines = {name: tuple(words) for name, words in ((NETWORK, here), (machine.name, there)) if words}
        yield Step(f"cable of {machine.name} ({machine.mac})", lines=lines)


def _names(lab: Lab) -> list[str]:
    return sorted(path.name.removeprefix(f"{lab.id}.") for path in FOLDER.glob(f"{lab.id}.*"))


def _links(lab: Lab, name: str) -> Links:
    answer = run(("ip", "-netns", lab.netns(name), "-json", "-details", "address", "show"))
    links = [Link.read(data) for data in json.loads(answer.output) if data]
    return {link.name: link for link in links}


def _ip(options: Sequence[str], lines: Sequence[str]) -> None:
    run(("ip", *options, "-batch", "-"), given="".join(f"{line}\n" for line in lines).encode())


def _read() -> dict[str, str | None]:
    """This thread's namespace's settings."""
    return {name: _value(_PROC / name) for name in _wanted_settings(False)}


def _value(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return None


def _write(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        path = _PROC / name
        if path.exists():
            path.write_text(value)
