"""Old revisions: how many are kept, for going back and for finding out."""

from __future__ import annotations

from collections.abc import Iterable

from falsework.kube.client import Object

DEFAULT_LIMIT = 5
UNLIMITED = -1


def prunable(revisions: Iterable[int], own: Object) -> list[int]:
    """Those that the operator's object `own` has no more use for: neither close before one that is latest, runs, is to
    run or failed somewhere, nor newer than all of these."""
    spec, status = own.get("spec") or {}, own.get("status") or {}
    good, bad = (int(spec.get(f"{kind}RevisionLimit") or DEFAULT_LIMIT) for kind in ("succeeded", "failed"))
    if UNLIMITED in (good, bad):
        return []
    latest = int(status.get("latestAvailableRevision") or 0)
    ends = [(latest, good)]
    for node in status.get("nodeStatuses") or ():
        ends += [(int(node.get(f"{which}Revision") or 0), good) for which in ("current", "target")]
        ends.append((int(node.get("lastFailedRevision") or 0), bad))
    kept = {number for end, limit in ends for number in range(end - limit + 1, end + 1)}
    return sorted(number for number in revisions if number < latest and number not in kept)
