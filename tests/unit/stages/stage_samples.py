"""A lab, a host that is whatever a test says, and stages that only note that they ran."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from falsework.host.facts import Host
from falsework.lab.folder import Lab
from falsework.lab.marker import mark
from falsework.progress import Progress
from falsework.site.load import default_site
from falsework.site.model import Site
from falsework.stages.context import Context
from falsework.stages.events import Event, EventLog, read_events
from falsework.stages.model import Stage


class SampleHost(Host):
    """A good host; a test changes what it wants to be bad."""

    root = True
    held = (1 << 41) - 1
    processors = 4
    memory = 32 * 1024
    numbers: dict[str, int] = {  # noqa: RUF012 - replaced, never changed
        "fs.inotify.max_user_instances": 8192,
        "fs.inotify.max_user_watches": 1 << 20,
        "kernel.pid_max": 1 << 22,
    }
    mountable: tuple[str, ...] = ("nfs",)
    files = 1 << 20
    time = 1_900_000_000.0
    synchronised = True
    free = 100 << 30
    devices: Callable[[Path], int] = staticmethod(lambda _: 1)
    flags = 0
    names: tuple[str, ...] = ()

    def is_root(self) -> bool:
        return self.root

    def capabilities(self) -> int:
        return self.held

    def cpus(self) -> int:
        return self.processors

    def memory_available_mib(self) -> int:
        return self.memory

    def sysctl(self, name: str) -> int | None:
        return self.numbers.get(name)

    def can_mount(self, file_system: str) -> bool:
        return file_system in self.mountable

    def open_files_limit(self) -> int:
        return self.files

    def now(self) -> float:
        return self.time

    def clock_is_synchronised(self) -> bool:
        return self.synchronised

    def free_bytes(self, path: Path) -> int:
        return self.free

    def device(self, path: Path) -> int:
        return self.devices(path)

    def mount_flags(self, path: Path) -> int:
        return self.flags

    def namespaces(self, prefix: str) -> list[str]:
        return [name for name in self.names if name.startswith(prefix)]


def host(**facts: object) -> SampleHost:
    made = SampleHost()
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def lab_in(folder: Path) -> Lab:
    return Lab.of(folder / "site", folder / "state")


def context_in(folder: Path, *, dry: bool = False, site: Site | None = None, host: Host | None = None) -> Context:
    lab = lab_in(folder)
    if not dry:
        mark(lab)
    events = None if dry else EventLog(lab.events)
    return Context(lab, lambda: site or default_site(), Progress(io.StringIO()), events, host or SampleHost())


def events_of(context: Context) -> list[Event]:
    return list(read_events(context.lab.events))


def told(context: Context, kind: str = "stage") -> list[tuple[str, str]]:
    return [(event.get("stage", ""), event["state"]) for event in events_of(context) if event["kind"] == kind]


@dataclass
class Recorder:
    """Stages whose runs are noted here, and what each of them finds done."""

    ran: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)

    def stage(self, name: str, run: Callable[[Context], None] | None = None, needs: Sequence[str] = ()) -> Stage:
        def act(context: Context) -> None:
            self.ran.append(name)
            if run:
                run(context)
            self.done.add(name)

        return Stage(
            name,
            title=f"Do {name}",
            why=f"Because of {name}.",
            run=act,
            needs=tuple(needs),
            done=lambda _: name in self.done,
            plan=lambda _: [f"would make {name}"],
        )
