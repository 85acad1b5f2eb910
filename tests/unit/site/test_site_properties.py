"""Sites made at random: every good one is accepted, every one with a single mistake is refused at its line."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from site_files import INSTALL, PULL_SECRET, SITE, SSH_KEY, examined, no_routes, quick

from falsework.site.load import Examined, examine_text
from falsework.site.model import Helper, Machine
from falsework.site.problems import Place

ALCHEMY = Path(__file__).parents[3] / "examples" / "alchemy"
ROLES = ("bootstrap", "master", "worker")


@dataclass(frozen=True)
class Drawn:
    """A good site, in values that can be written into files and counted on."""

    name: str
    base_domain: str
    cidr: IPv4Network
    masters: int
    workers: int
    listed: bool
    macs: tuple[int, ...]
    hosts: tuple[int, ...]
    with_addresses: bool
    openshift: bool
    old_names: bool
    host_prefix: int
    shuffle: int = field(repr=False)

    @property
    def names(self) -> list[tuple[str, str]]:
        names = [("bootstrap", "bootstrap")]
        names += [(f"m{index}", "master") for index in range(self.masters)]
        names += [(f"w{index}", "worker") for index in range(self.workers)]
        return names

    def address(self, index: int) -> str:
        return str(self.cidr[self.hosts[index]])

    def mac(self, index: int) -> str:
        return ":".join(f"{byte:02x}" for byte in (0x5254 << 32 | self.macs[index]).to_bytes(6, "big"))

    def install(self) -> list[str]:
        cluster = "clusterNetworks" if self.old_names else "clusterNetwork"
        machine = [f"  machineCIDR: {self.cidr}"] if self.old_names else ["  machineNetwork:", f"  - cidr: {self.cidr}"]
        blocks = [
            ["apiVersion: v1"],
            [f"baseDomain: {self.base_domain}"],
            ["metadata:", f"  name: {self.name}"],
            ["controlPlane:", "  name: master", f"  replicas: {self.masters}"],
            ["compute:", "- name: worker", f"  replicas: {self.workers}"],
            [
                "networking:",
                *machine,
                f"  {cluster}:",
                "  - cidr: 10.128.0.0/14",
                f"    hostPrefix: {self.host_prefix}",
                "  serviceNetwork:",
                "  - 172.30.0.0/16",
            ],
            ["platform:", "  none: {}"],
            [f"pullSecret: '{PULL_SECRET}'"],
            [f"sshKey: {SSH_KEY}"],
        ]
        random.Random(self.shuffle).shuffle(blocks)  # noqa: S311 - the order of keys, drawn by hypothesis
        return [line for block in blocks for line in block]

    def site(self) -> list[str]:
        lines = [f"distribution: {'openshift' if self.openshift else 'kubernetes'}"]
        lines += ["network:", f"  cidr: {self.cidr}", f"  gateway: {self.address(0)}"]
        lines += ["helper:", f"  address: {self.address(1)}", f"  mac: '{self.mac(0)}'"]
        if self.listed:
            lines.append("machines:")
            for index, (name, role) in enumerate(self.names):
                lines += [f"- name: {name}", f"  role: {role}", f"  mac: {self.mac(index + 1)}"]
                if self.with_addresses:
                    lines.append(f"  address: {self.address(index + 2)}")
        return lines


_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _label(chance: random.Random) -> str:
    """A DNS label that YAML does not take for something else."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    middle = "".join(chance.choices(letters + "0123456789-", k=chance.randint(0, 7)))
    label = chance.choice(letters) + middle + chance.choice(letters)
    return label if label not in _NOT_TEXT else "label"


@st.composite
def sites(draw: st.DrawFn) -> Drawn:
    """What decides is drawn, so that it shrinks; names and numbers come from a seed, which is much quicker."""
    masters = draw(st.sampled_from((1, 3, 5, 7)))
    workers = draw(st.integers(0, 12))
    prefix = draw(st.integers(16, 27))
    seed = draw(st.integers(0, 2**32))
    chance = random.Random(seed)  # noqa: S311
    space = IPv4Network(chance.choice(("10.0.0.0/9", "192.168.0.0/16", "172.20.0.0/14")))
    offset = chance.randrange(1 << (prefix - space.prefixlen))
    cidr = IPv4Network((int(space.network_address) + (offset << (32 - prefix)), prefix))
    count = masters + workers + 3
    if count > cidr.num_addresses - 2:
        workers, count = 0, masters + 3
    return Drawn(
        name=_label(chance),
        base_domain=f"{_label(chance)}.{_label(chance)}",
        cidr=cidr,
        masters=masters,
        workers=workers,
        listed=draw(st.booleans()),
        macs=tuple(chance.sample(range(2**32), count)),
        hosts=tuple(chance.sample(range(1, cidr.num_addresses - 1), count)),
        with_addresses=draw(st.booleans()),
        openshift=draw(st.booleans()),
        old_names=draw(st.booleans()),
        host_prefix=draw(st.integers(22, 28)),
        shuffle=seed,
    )


def _examined(install: list[str], site: list[str]) -> Examined:
    return examined("\n".join(install) + "\n", "\n".join(site) + "\n")


@quick(60)
@given(sites())
def test_every_good_site_is_accepted(drawn: Drawn) -> None:
    found = _examined(drawn.install(), drawn.site())
    assert found.site is not None, [str(error) for error in found.errors]
    site = found.site
    assert site.domain == f"{drawn.name}.{drawn.base_domain}"
    assert (len(site.masters), len(site.workers)) == (drawn.masters, drawn.workers)
    everyone: list[Helper | Machine] = [site.helper, *site.machines]
    addresses = [machine.address for machine in everyone]
    assert len({*addresses, site.lab.gateway}) == len(addresses) + 1
    assert all(address in drawn.cidr for address in addresses)
    assert len({machine.mac for machine in everyone}) == len(addresses)
    assert [machine.role for machine in site.machines] == sorted(
        (machine.role for machine in site.machines), key=ROLES.index
    )


# A mistake changes the lines of one file and says in which line it is (and must be told).
Files = tuple[list[str], list[str]]
Mistake = Callable[[Drawn, list[str], list[str], random.Random], tuple[str, int] | None]


def _line(lines: list[str], start: str) -> int:
    return next(index for index, line in enumerate(lines) if line.startswith(start))


def _change(file: str, start: str, new: str) -> Mistake:
    def mistake(_: Drawn, install: list[str], site: list[str], __: random.Random) -> tuple[str, int]:
        lines = install if file == "install-config.yaml" else site
        index = _line(lines, start)
        lines[index] = new
        return file, index + 1

    return mistake


def _machine_lines(site: list[str], start: str) -> list[int]:
    first = _line(site, "machines:")
    return [index for index, line in enumerate(site) if index > first and line.startswith(start)]


def _same(start: str) -> Mistake:
    """Two machines with the same name, MAC or address: told at the second."""

    def mistake(_: Drawn, __: list[str], site: list[str], chance: random.Random) -> tuple[str, int] | None:
        indexes = _machine_lines(site, start) if "machines:" in site else []
        if len(indexes) < 2:
            return None
        one, other = sorted(chance.sample(indexes, 2))
        site[other] = site[one]
        return "site.yaml", other + 1

    return mistake


def _in_a_machine(start: str, value: Callable[[Drawn], str]) -> Mistake:
    def mistake(drawn: Drawn, _: list[str], site: list[str], chance: random.Random) -> tuple[str, int] | None:
        indexes = _machine_lines(site, start) if "machines:" in site else []
        if not indexes:
            return None
        index = chance.choice(indexes)
        site[index] = start + value(drawn)
        return "site.yaml", index + 1

    return mistake


def _unknown_key(drawn: Drawn, install: list[str], site: list[str], chance: random.Random) -> tuple[str, int]:
    file, lines = chance.choice((("install-config.yaml", install), ("site.yaml", site)))
    tops = [index for index, line in enumerate(lines) if line[0] not in " -"]
    index = chance.choice([*tops, len(lines)])
    lines.insert(index, f"{drawn.name}Unknown: 1")
    return file, index + 1


def _twice(_: Drawn, install: list[str], __: list[str], chance: random.Random) -> tuple[str, int]:
    single = [index for index, line in enumerate(install) if line[0] not in " -" and not line.endswith(":")]
    install.append(install[chance.choice(single)])
    return "install-config.yaml", len(install)


def _wrong_count(drawn: Drawn, install: list[str], site: list[str], _: random.Random) -> tuple[str, int] | None:
    if not drawn.listed:
        return None
    index = _line(install, "  replicas: ")
    while install[index - 1] != "  name: master":
        index += 1
    install[index] = f"  replicas: {drawn.masters + 2}"
    return "install-config.yaml", index + 1


def _even(drawn: Drawn, install: list[str], _: list[str], __: random.Random) -> tuple[str, int] | None:
    if drawn.listed or drawn.masters + drawn.workers + 4 > drawn.cidr.num_addresses - 2:
        return None
    index = install.index("  name: master") + 1
    install[index] = f"  replicas: {drawn.masters + 1}"
    return "install-config.yaml", index + 1


IN_MACHINES: list[Mistake] = [
    _same("- name"),
    _same("  mac"),
    _same("  address"),
    _in_a_machine("  role: ", lambda _: "boss"),
    _in_a_machine("  mac: ", lambda drawn: drawn.mac(0)),
    _in_a_machine("  address: ", lambda drawn: drawn.address(0)),
    _in_a_machine("  address: ", lambda drawn: drawn.address(1)),
    _in_a_machine("  address: ", lambda drawn: str(drawn.cidr.broadcast_address)),
    _in_a_machine("  address: ", lambda _: "203.0.113.7"),
    _in_a_machine("  address: ", lambda _: "fd00::7"),
    _in_a_machine("- name: ", lambda _: "api-int"),
    _in_a_machine("- name: ", lambda _: "x" * 64),
]
MISTAKES: list[Mistake] = [
    _change("install-config.yaml", "apiVersion", "apiVersion: v3"),
    _change("install-config.yaml", "baseDomain", "baseDomain: Not_A_Domain"),
    _change("install-config.yaml", "  name: master", "  name: chief"),
    _change("install-config.yaml", "- name: worker", "- name: edge"),
    _change("install-config.yaml", "  - 172.30.0.0/16", "  - 172.30.0.1/16"),
    _change("install-config.yaml", "  - 172.30.0.0/16", "  - 10.128.0.0/8"),
    _change("install-config.yaml", "  - cidr: 10.128.0.0/14", "  - cidr: 100.64.0.0/14"),
    _change("install-config.yaml", "    hostPrefix", "    hostPrefix: 12"),
    _change("install-config.yaml", "  none: {}", "  aws: {}"),
    _change("install-config.yaml", "sshKey", "sshKey: ssh-rsa not-a-key"),
    _change("site.yaml", "distribution", "distribution: nomad"),
    _change("site.yaml", "  cidr", "  cidr: 1.2.3.4"),
    _change("site.yaml", "  gateway", "  gateway: 203.0.113.7"),
    _change("site.yaml", "  mac", "  mac: 01:00:5e:00:00:01"),
    *IN_MACHINES,
    _unknown_key,
    _twice,
    _wrong_count,
    _even,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=range(len(MISTAKES)))
@quick(6)
@given(drawn=sites(), chance=st.randoms(use_true_random=False))
def test_every_site_with_one_mistake_is_refused_at_its_line(
    mistake: Mistake, drawn: Drawn, chance: random.Random
) -> None:
    if mistake is _even:
        drawn = replace(drawn, listed=False)
    elif mistake is _wrong_count or mistake in IN_MACHINES:
        drawn = replace(drawn, listed=True, with_addresses=True)
    install, site = drawn.install(), drawn.site()
    where = mistake(drawn, install, site, chance)
    assume(where is not None)
    found = _examined(install, site)
    assert found.site is None
    assert {(error.file, error.line) for error in found.errors} == {where}, [str(error) for error in found.errors]


# Fuzz: whatever comes in, what goes out is a site or problems with places.

_words = st.sampled_from(
    [
        *("apiVersion", "v1", "baseDomain", "metadata", "name", "replicas", "networking", "clusterNetwork", "cidr"),
        *("platform", "none", "machines", "role", "mac", "address", "network", "helper", "sizes", "timeouts", "sshKey"),
        *("10.0.0.0/8", "fd00::/64", "on", "null", "~", "-1", "1e9", "0x10", "52:54:00:00:00:01", "2020-01-01", "="),
        *("pullSecret", '{"auths":{}}', "nfsShares", "upstreamDNS", "proxy", "capabilities", "<<", "hostPrefix", ""),
    ]
)
_scalars = _words | st.text(max_size=8) | st.integers() | st.booleans() | st.none() | st.floats()
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=5),
    max_leaves=25,
)


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _dumped(tree: object) -> bytes:
    return str(yaml.dump(tree, Dumper=_Dumper, allow_unicode=True)).encode("utf-8", "surrogatepass")


def _assert_answered(found: Examined) -> None:
    assert (found.site is None) == bool(found.errors)
    for problem in found.problems:
        assert isinstance(problem.place, Place)
        assert problem.what
        assert problem.right
        assert "\n" not in str(problem)
        assert len(str(problem)) < 1000


def _fuzzed(install: bytes | None, site: bytes | None) -> None:
    _assert_answered(examine_text(install, site, routes=no_routes))


@quick(120)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_answered(content: bytes, first: bool) -> None:
    _fuzzed(content if first else None, None if first else content)


@quick(150)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,?. \n\t0~<\r\x85\u2028", max_size=40))
def test_any_yaml_like_text_is_answered(text: str) -> None:
    _fuzzed(text.encode(), text.encode())


@quick(50)
@given(_trees, _trees)
def test_any_tree_is_answered(install: object, site: object) -> None:
    _fuzzed(_dumped(install), _dumped(site))


@quick(25)
@given(st.dictionaries(_words, _trees, max_size=6), st.randoms(use_true_random=False))
def test_values_of_any_kind_in_good_files_are_answered(values: dict[str, object], chance: random.Random) -> None:
    """A good file, with some of its keys given other values."""
    files = []
    for text in (INSTALL, SITE):
        tree = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe one
        for value in values.values():
            target = tree
            while isinstance(target, dict) and target:
                key = chance.choice(sorted(target, key=str))
                if not isinstance(target[key], dict) or chance.random() < 0.5:
                    target[key] = value
                    break
                target = target[key]
        files.append(_dumped(tree))
    _fuzzed(*files)


@quick(80)
@given(st.data(), st.sampled_from([INSTALL, SITE, *(path.read_text() for path in sorted(ALCHEMY.iterdir()))]))
def test_mutations_of_good_files_are_answered(data: st.DataObject, text: str) -> None:
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 30)))
        action = data.draw(st.integers(0, 2))
        if action == 0:
            content[start:end] = data.draw(st.binary(max_size=4))
        elif action == 1:
            content[start:start] = content[end : end + 40]
        else:
            del content[start:end]
    _fuzzed(bytes(content), None)
    _fuzzed(None, bytes(content))
