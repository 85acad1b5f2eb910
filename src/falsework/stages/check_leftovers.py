"""Checks for what an earlier lab left: what stands in the way is named, and nothing of it is touched."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.lab import marker
from falsework.machines import network
from falsework.stages.context import Context
from falsework.stages.findings import Finding, note, ok, problem, warning


def own_folder(context: Context) -> Iterator[Finding]:
    """Whether what is in the lab's folder can be continued."""
    lab = context.lab
    destroy = f"run `falsework destroy --dir {lab.site_folder}`"
    try:
        found = marker.read_marker(lab.root)
    except ValueError:
        yield problem(f"{lab.root / marker.FILE} cannot be read", f"{destroy}, which removes what the lab had")
        return
    if found is None and not marker.is_empty(lab.root):
        yield problem(f"{lab.root} is what an interrupted `falsework destroy` left", f"{destroy} again")
    elif found and found.version != marker.VERSION:
        age = "a newer" if found.version > marker.VERSION else "an older"
        yield problem(f"the lab in {lab.root} was made by {age} Falsework", f"{destroy} with that Falsework")
    else:
        yield ok(f"the lab's folder: {lab.root}")


def own_namespaces(context: Context) -> Iterator[Finding]:
    """Namespaces with this lab's name that its journal does not know: it was removed by hand."""
    known = {thing.name for thing in context.journal.standing() if thing.kind == network.KIND}
    strays = [name for name in context.host.namespaces(f"{context.lab.id}.") if name not in known]
    if strays:
        yield problem(
            f"network namespaces of this lab are left, though its journal does not name them: {', '.join(strays)}",
            f"its folder {context.lab.root} was removed by hand; run `ip netns delete NAME` for each",
        )
    else:
        yield ok("no stray namespaces")


def other_labs(context: Context) -> Iterator[Finding]:
    """Labs nobody can name a site folder for any more still use memory and disk."""
    others = 0
    for folder in marker.lab_folders(context.lab.root.parent):
        if folder == context.lab.root:
            continue
        try:
            found = marker.read_marker(folder)
        except ValueError:
            found = None
        if found is None:
            yield warning(f"{folder} is a lab's folder without a readable {marker.FILE}", "see what is in it")
        elif not found.site_folder.is_dir():
            yield warning(
                f"the lab of {found.site_folder}, a folder that is gone, is still on this host",
                f"run `falsework destroy --dir {found.site_folder}`",
            )
        else:
            others += 1
    if others:
        yield note(f"{others} more lab{'s' if others > 1 else ''} on this host; each has a network of its own")
