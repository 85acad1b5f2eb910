"""Where the pinned parts of the release come from: the cache, a mirror, or their recipe; in this order."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from falsework import process
from falsework.errors import FalseworkError
from falsework.files import sha256_of
from falsework.progress import Progress, Task
from falsework.release.cache import DISK_NEED, Cache
from falsework.release.mirror import Mirror, fetch_into
from falsework.release.payload import Payload
from falsework.release.recipes import (
    BUILD_ROOT,
    GO_TOOLCHAIN,
    CompiledRecipe,
    CRecipe,
    DebianRecipe,
    GoRecipe,
    Part,
    Recipe,
    ToolchainRecipe,
    Workshop,
)

_BYTES_TO_BUILD = 10 << 30


class Sources:
    """`repin` takes what is built as right instead of comparing it with the pins, so that new ones can be written.

    `locked` refuses what differs from the pins even where there is an honest reason for it.
    """

    def __init__(
        self,
        payload: Payload,
        cache: Cache,
        progress: Progress,
        *,
        mirror: Mirror | None = None,
        locked: bool = False,
        repin: bool = False,
    ) -> None:
        self.payload = payload
        self.cache = cache
        self.progress = progress
        self.mirror = mirror
        self.locked = locked
        self.repin = repin
        self._pins = {name: pin.sha256 for name, pin in payload.pins.items()}
        self._pins[GO_TOOLCHAIN] = payload.toolchain.sha256
        workshop = Workshop(payload, cache, self.need, progress.say)
        self._tools: dict[str, Recipe] = {
            GO_TOOLCHAIN: ToolchainRecipe(payload.toolchain, progress.say),
            BUILD_ROOT: DebianRecipe(payload.debian_roots[BUILD_ROOT], payload.epoch, progress.say),
        }
        # Kubernetes takes longest and is listed first, so that it is not left to run alone at the end.
        self.recipes: list[Recipe] = [
            *(GoRecipe(unit, workshop) for unit in payload.go_units.values()),
            *(
                DebianRecipe(root, payload.epoch, progress.say)
                for root in payload.debian_roots.values()
                if root.name != BUILD_ROOT
            ),
            *(CRecipe(program, workshop) for program in payload.c_programs.values()),
        ]
        # Compilers keep the cores busy; what waits for the network or the disk has workers of its own. So nobody who
        # waits for a tool can take up the worker that is to bring it.
        self._compiling = ThreadPoolExecutor(max_workers=os.cpu_count())
        self._fetching = ThreadPoolExecutor(max_workers=2)
        self._tools_started: dict[str, Future[list[Part]]] = {}
        self._lock = threading.Lock()

    def gather(self) -> dict[str, Part]:
        """Every part by name. What is missing is fetched or made, as many at once as the cores allow."""
        at_hand = {recipe.name: self._cached(recipe) for recipe in self.recipes}
        missing = [recipe for recipe in self.recipes if at_hand[recipe.name] is None]
        if missing and self.mirror is None:
            self._check_space()
        if self.mirror is None and any(isinstance(recipe, CompiledRecipe) for recipe in missing):
            for name in self._tools:
                self._start_tool(name)
        futures = {recipe.name: self._pool_for(recipe).submit(self._bring, recipe) for recipe in missing}
        try:
            faults = {name: fault for name, future in futures.items() if (fault := future.exception())}
        except BaseException:
            process.kill_all()
            raise
        finally:
            self._compiling.shutdown(cancel_futures=True)
            self._fetching.shutdown(cancel_futures=True)
        if faults:
            raise _combined(faults)
        brought = [part for name, future in futures.items() for part in future.result()]
        return {part.name: part for part in [*(part for parts in at_hand.values() for part in parts or ()), *brought]}

    def packages_in_use(self) -> dict[str, dict[str, str]]:
        """Debian root → package → `version sha256`, as of this or an earlier run of the same recipes."""
        roots = [recipe for recipe in (*self.recipes, *self._tools.values()) if isinstance(recipe, DebianRecipe)]
        records = {root.name: self.cache.record(root.key()) for root in roots}
        return {name: record["packages"] for name, record in records.items() if record}

    def need(self, name: str) -> Part:
        """A part that only serves to make others."""
        return self._start_tool(name).result()[0]

    def _start_tool(self, name: str) -> Future[list[Part]]:
        with self._lock:
            if name not in self._tools_started:
                self._tools_started[name] = self._fetching.submit(self._bring, self._tools[name])
            return self._tools_started[name]

    def _pool_for(self, recipe: Recipe) -> ThreadPoolExecutor:
        return self._compiling if isinstance(recipe, CompiledRecipe) else self._fetching

    def _bring(self, recipe: Recipe) -> list[Part]:
        if found := self._cached(recipe):
            return found
        with self.progress.task(recipe.name) as task:
            if found := self._mirrored(recipe):
                task.doing = "from the mirror"
            elif found := self._recorded(recipe):
                task.doing = "in the cache"
            else:
                found = self._made(recipe, task)
                task.doing = "built"
            return found

    def _cached(self, recipe: Recipe) -> list[Part] | None:
        if self.repin and recipe.name != GO_TOOLCHAIN:
            return None
        return self._parts(recipe, self._pins_of(recipe))

    def _mirrored(self, recipe: Recipe) -> list[Part] | None:
        if self.mirror is None or self.repin:
            return None
        for name, digest in self._pins_of(recipe).items():
            if not self.cache.find(digest, name):
                fetch_into(self.cache, self.mirror, digest, name)
        if parts := self._cached(recipe):
            return parts
        self.progress.say(f"{recipe.name}: {self.mirror.place} does not have it as pinned")
        return None

    def _pins_of(self, recipe: Recipe) -> dict[str, str]:
        return {name: self._pins[name] for name in recipe.outputs if name in self._pins}

    def _recorded(self, recipe: Recipe) -> list[Part] | None:
        """What the same recipe gave an earlier run that could not get the pinned one either."""
        record = self.cache.record(recipe.key())
        if record is None or not self._acceptable(recipe, record["digests"]):
            return None
        return self._parts(recipe, record["digests"])

    def _made(self, recipe: Recipe, task: Task, *, afresh: bool = False) -> list[Part]:
        with self.cache.work(recipe.name) as folder:
            made = recipe.make(folder, task, afresh=afresh)
            digests = {name: sha256_of(path) for name, path in made.items()}
            if self._acceptable(recipe, digests):
                return self._taken(recipe, made, digests)
        if afresh or recipe.may_differ():
            raise self._refusal(recipe, digests)
        # An altered file in Go's caches is the likeliest reason, and one that can be put right.
        self.progress.say(f"{recipe.name}: the result is not the pinned one; building again without caches")
        self.cache.distrust_go_caches()
        return self._made(recipe, task, afresh=True)

    def _taken(self, recipe: Recipe, made: dict[str, Path], digests: dict[str, str]) -> list[Part]:
        """Results moved into the cache, with a record of what they were made from."""
        if self._differing(digests) and not self.repin:
            reason = _why_it_differs(self.payload.packages.get(recipe.name, {}), recipe.packages)
            self.progress.say(f"{recipe.name}: not as pinned, {reason}")
        for path in made.values():
            self.cache.add(path)
        self.cache.set_record(recipe.key(), {"digests": digests, "packages": recipe.packages})
        parts = self._parts(recipe, digests)
        assert parts is not None, "they were added a moment ago"
        return parts

    def _acceptable(self, recipe: Recipe, digests: dict[str, str]) -> bool:
        return self.repin or not self._differing(digests) or (recipe.may_differ() and not self.locked)

    def _differing(self, digests: dict[str, str]) -> list[str]:
        return [name for name, digest in digests.items() if digest != self._pins.get(name)]

    def _refusal(self, recipe: Recipe, digests: dict[str, str]) -> FalseworkError:
        name = self._differing(digests)[0]
        return FalseworkError(
            f"{name} came out as sha256:{digests[name]}, the release pins sha256:{self._pins.get(name, '(nothing)')}",
            cause="Debian's archive has moved on, and --locked was asked for"
            if recipe.may_differ()
            else f"its source {recipe.source} or the compiler is not the one that was pinned",
            fix="use a mirror that has it (--mirror …), or, if the payload was changed on purpose, "
            "run `falsework release lock`",
        )

    def _parts(self, recipe: Recipe, digests: dict[str, str]) -> list[Part] | None:
        parts = []
        for name in recipe.outputs:
            path = self.cache.find(digests[name], name) if name in digests else None
            if path is None:
                return None
            pinned = digests[name] == self._pins.get(name)
            parts.append(Part(name, recipe.version, recipe.source, digests[name], path, pinned))
        return parts

    def _check_space(self) -> None:
        if self.cache.free_bytes() < _BYTES_TO_BUILD:
            raise FalseworkError(
                f"{self.cache.root} has {self.cache.free_bytes() / 2**30:.1f} GB free",
                cause=DISK_NEED,
                fix="free some space or set FALSEWORK_CACHE to a folder on a larger disk, then run this again",
            )


def _why_it_differs(pinned: dict[str, str], actual: dict[str, str]) -> str:
    """For a message; the first few of the packages that are not the pinned ones by name."""
    names = [name for name in sorted(pinned | actual) if pinned.get(name) != actual.get(name)]
    if actual and not names:
        return "although its packages are: this host's mmdebstrap may be another version"
    shown = [f"{name} {actual.get(name, 'gone').split()[0]}" for name in names[:4]]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return "because Debian's archive has moved on" + (f" ({', '.join(shown)}{more})" if shown else "")


def _combined(faults: dict[str, BaseException]) -> BaseException:
    """One error for all: the first in full, the others by name."""
    name, first = next(iter(faults.items()))
    if not isinstance(first, FalseworkError):
        return first
    others = f" (and {', '.join(list(faults)[1:])})" if len(faults) > 1 else ""
    return FalseworkError(f"{name}{others} could not be made: {first.what}", cause=first.cause, fix=first.fix)
