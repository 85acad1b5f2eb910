"""Places for servers in a running HAProxy: pods come and go in them, and it need not be loaded anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falsework.operators.router.endpoints import Endpoint

Slots = tuple[Endpoint | None, ...]
"""What is in each place; None is free."""

_SPARE = 4


def fresh(endpoints: Sequence[Endpoint]) -> Slots:
    """Room for twice as many, and a few more for those who begin with none."""
    return (*endpoints, *(None,) * (len(endpoints) + _SPARE))


def fitted(slots: Slots, endpoints: Sequence[Endpoint]) -> Slots | None:
    """The same places with these in them. Who stays, stays where it is; None if there are not places enough."""
    if len(endpoints) > len(slots):
        return None
    wanted = {endpoint.place: endpoint for endpoint in endpoints}
    kept = [wanted.pop(old.place, None) if old is not None else None for old in slots]
    waiting = sorted(wanted.values())
    # Places nobody has come first: a pod is there before another one has gone.
    for index in sorted(range(len(slots)), key=lambda index: slots[index] is not None):
        if kept[index] is None and waiting:
            kept[index] = waiting.pop(0)
    return tuple(kept)


def server_name(index: int) -> str:
    return f"pod-{index + 1}"


def changes(backend: str, old: Slots, new: Slots) -> Iterator[str]:
    """HAProxy's commands from the one to the other: those who come first, so that no moment is without any."""
    leaving = []
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        place = f"set server {backend}/{server_name(index)}"
        if after is None:
            if before is not None:
                leaving.append(f"{place} state maint")
            continue
        if before is None or before.place != after.place:
            yield f"{place} addr {after.address} port {after.port}"
        if before is None or before.weight != after.weight:
            yield f"{place} weight {after.weight}"
        if before is None:
            yield f"{place} state ready"
    yield from leaving
