"""The second stage: everything that will run on the machines, on this host's disk and checked."""

from __future__ import annotations

from falsework.stages.context import Context
from falsework.stages.model import Stage


def _done(context: Context) -> bool:
    return context.find_release() is not None


def _plan(context: Context) -> list[str]:
    from falsework.release import inventory
    from falsework.release.payload import load_payload

    items = inventory.items(context.cache, load_payload())
    absent = [item.name for item in items if not item.present]
    if not absent:
        return [f"read again and put together what has changed in {context.cache.root}"]
    return [f"build or fetch into {context.cache.root}: {', '.join(absent)}"]


def _run(context: Context) -> None:
    from falsework.files import explained_disk_errors
    from falsework.release.build import build_release
    from falsework.release.cache import DISK_NEED
    from falsework.release.payload import load_payload

    with explained_disk_errors(context.cache.root, DISK_NEED):
        release = build_release(load_payload(), context.cache, context.progress)
    context.doing(f"release {release.version}: {len(release.parts)} parts and {len(release.images)} images")


STAGE = Stage(
    name="release",
    title="Bring the release",
    why="The machines run exactly these programs and images, pinned by digest; they are fetched or built once for all.",
    needs=("preflight",),
    done=_done,
    plan=_plan,
    run=_run,
)
