"""Changing a person's files as they would: a line comes or goes, and everything else, comments too, stays.

The texts were read as a site before, so their form is known to be good. Whoever writes the result reads it as a site
first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from falsework.errors import UsageError
from falsework.site.model import Machine, Role, Site

_HEAD = (
    "# Where the cluster is. Every key is described in docs/site-file.md; `falsework validate` checks this file.",
    "machines:   # all of them; `falsework node add` and `falsework node remove` change this list",
)


@dataclass(frozen=True)
class SiteTexts:
    """None stands for a file that is not there."""

    install: str | None
    site: str | None


def new_worker_names(site: Site, count: int) -> list[str]:
    taken = {machine.name for machine in site.machines} | {site.helper.name}
    names = (f"worker-{index}" for index in range(len(taken) + count))
    return [name for name in names if name not in taken][:count]


def with_workers(texts: SiteTexts, site: Site, names: Iterable[str]) -> SiteTexts:
    """The list of machines with these too. Where there was none, the others get into it as they are now, so that
    none of them changes; the new ones have the first free addresses."""
    new = [f"- {{name: {name}, role: {Role.WORKER}}}" for name in names]
    found = _machines(texts.site)
    workers = len(site.workers) + len(new)
    if found is None:
        known = [_entry(machine) for machine in site.machines]
        text = _ended(texts.site or "") + "\n".join([*(_HEAD if not texts.site else _HEAD[1:]), *known, *new]) + "\n"
    else:
        lines = _lines(texts.site)
        at = _last_line(found.value[-1]) + 1
        lines[at - 1] = _ended(lines[at - 1])
        indent = " " * found.start_mark.column
        text = "".join([*lines[:at], *(f"{indent}{line}\n" for line in new), *lines[at:]])
    return SiteTexts(_with_replicas(texts.install, workers), text)


def without_machine(texts: SiteTexts, site: Site, name: str) -> SiteTexts:
    found = _machines(texts.site)
    workers = sum(machine.name != name for machine in site.workers)
    if found is None:
        known = [_entry(machine) for machine in site.machines if machine.name != name]
        text = _ended(texts.site or "") + "\n".join([*(_HEAD if not texts.site else _HEAD[1:]), *known]) + "\n"
    else:
        # Those that have the next free address would move up.
        pinned = with_addresses(texts.site or "", site, [machine.name for machine in site.workers])
        entry = next(item for item in (_machines(pinned) or found).value if _name(item) == name)
        lines = _lines(pinned)
        first, last = entry.start_mark.line, _last_line(entry)
        text = "".join([*lines[:first], *lines[last + 1 :]])
    return SiteTexts(_with_replicas(texts.install, workers), text)


def with_addresses(text: str, site: Site, names: Iterable[str]) -> str:
    """The list in which these machines have the addresses they have now, whoever comes or goes."""
    wanted = set(names)
    found = _machines(text)
    for entry in reversed(found.value if found else []):
        name = _name(entry)
        if name not in wanted or _value(entry, "address") is not None:
            continue
        address = f"address: {site.machine(name).address}"
        if entry.flow_style:
            end = entry.end_mark.index - 1
            text = f"{text[:end]}, {address}{text[end:]}"
        else:
            lines = _lines(text)
            lines.insert(_last_line(entry) + 1, f"{' ' * entry.start_mark.column}{address}\n")
            text = "".join(lines)
    return text


def _machines(text: str | None) -> yaml.SequenceNode | None:
    """The list of machines in site.yaml, if it has one."""
    found = _value(yaml.compose(text, yaml.SafeLoader) if text else None, "machines")
    if not isinstance(found, yaml.SequenceNode):
        return None
    if found.flow_style:
        raise UsageError(
            "the list of machines in site.yaml is written in brackets",
            cause="a machine cannot be added to it, or taken out of it, without changing lines that are yours",
            fix="write each machine in a line of its own that begins with `- `",
        )
    return found


def _with_replicas(text: str | None, workers: int) -> str | None:
    """install-config.yaml with the new number of workers, where it has a number that counts: with 0 they join by
    themselves."""
    root = yaml.compose(text, yaml.SafeLoader) if text else None
    pools = _value(root, "compute")
    replicas = _value(pools.value[0], "replicas") if isinstance(pools, yaml.SequenceNode) and pools.value else None
    if text is None or not isinstance(replicas, yaml.ScalarNode) or replicas.value == "0":
        return text
    return text[: replicas.start_mark.index] + str(workers) + text[replicas.end_mark.index :]


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _name(entry: yaml.Node) -> str:
    found = _value(entry, "name")
    return str(found.value) if found else ""


def _last_line(node: yaml.Node) -> int:
    """Where what is written of it ends. A block's own end is where the next thing begins, comments in between."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return _last_line(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return _last_line(node.value[-1])
    return int(node.end_mark.line)


def _entry(machine: Machine) -> str:
    return f"- {{name: {machine.name}, role: {machine.role}, mac: '{machine.mac}', address: {machine.address}}}"


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines(keepends=True)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
