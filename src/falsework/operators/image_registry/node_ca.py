"""On a node: tells containerd where the cluster's registry is, whom to trust there, and who the node is.

containerd reads these files each time it pulls. Folders of other registries stay as they are: those made here carry a
mark, which is there before anything else of them and goes last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from falsework.errors import FalseworkError
from falsework.files import is_draft, write_file
from falsework.operators.image_registry.node_registries import CERTS_D, FILE, NodeRegistry, digest_of, parsed

_MARK = ".node-ca"
_AUTHORITY, _HOSTS = "ca.crt", "hosts.toml"


def write_registries(folder: Path, wanted: Iterable[NodeRegistry], seen_as: Path = Path(CERTS_D)) -> list[str]:
    """Exactly these, of those that are ours; what was done. `seen_as` is the folder as containerd sees it."""
    by_host = {registry.host: registry for registry in wanted}
    done = [f"{host} is known" for host, registry in by_host.items() if _write(folder, registry, seen_as / host)]
    ours = sorted(mark.parent for mark in folder.glob(f"*/{_MARK}"))
    gone = [place for place in ours if place.name not in by_host]
    for place in gone:
        _remove(place)
    return done + [f"{place.name} is forgotten" for place in gone]


def hosts_file(registry: NodeRegistry, folder: Path) -> bytes:
    from falsework.assets.serialize import to_toml

    there = {
        "capabilities": ["pull", "resolve"],
        "ca": str(folder / _AUTHORITY),
        "header": {"authorization": registry.authorization},
    }
    return to_toml({"server": registry.url, "host": {registry.url: there}})


def _write(folder: Path, registry: NodeRegistry, seen_as: Path) -> bool:
    """Whether it was not so already."""
    place = folder / registry.host
    if place.is_dir() and not (place / _MARK).exists() and any(place.iterdir()):
        raise FalseworkError(
            f"{place} is there already", cause="somebody else has told this node of it", fix="remove it on the node"
        )
    hosts = hosts_file(registry, seen_as)
    contents = {_MARK: (b"", 0o644), _AUTHORITY: (registry.authority.encode(), 0o644), _HOSTS: (hosts, 0o600)}
    missing = {name: entry for name, entry in contents.items() if not _has(place / name, entry[0])}
    for name, (content, mode) in missing.items():
        write_file(place / name, content, mode)
    return bool(missing)


def _remove(place: Path) -> None:
    for left in [path for path in place.iterdir() if is_draft(path.name)]:
        left.unlink()
    # First what names the others: there is never a file that points to nothing.
    for name in (_HOSTS, _AUTHORITY, _MARK):
        (place / name).unlink(missing_ok=True)
    # What somebody has added stays his.
    if not any(place.iterdir()):
        place.rmdir()


def _has(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="node-ca", description=__doc__)
    parser.add_argument("--registries", type=Path, required=True, help="what the operator says of them")
    parser.add_argument("--digest", required=True, help="of what it has to say")
    parser.add_argument("--folder", type=Path, default=Path(CERTS_D))
    options = parser.parse_args(words)
    try:
        content = options.registries.read_bytes()
        if digest_of({FILE: content}) != options.digest:
            raise FalseworkError("this node has not got the newest of it yet", fix="nothing: it is tried again")
        done = write_registries(options.folder, parsed(content))
    except (FalseworkError, OSError) as error:
        print(f"node-ca: {error}", file=sys.stderr)
        return 1
    print("; ".join(done) or "Everything is as it was", file=sys.stderr)
    return 0
