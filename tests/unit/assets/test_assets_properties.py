"""Whatever a person, a clock or a kill does in between: the promises of the graph hold."""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asset_samples import START, at
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from falsework.assets import graph as graph_module
from falsework.assets.graph import Asset, Files, Given, Graph
from falsework.assets.pki import Life
from falsework.files import write_file

PATHS = ("notes/a.yaml", "notes/b.yaml")
DAY = timedelta(days=1)


class Killed(BaseException):
    pass


class Person(RuleBasedStateMachine):
    """Edits, deletes, adds, waits, changes the site, kills runs, and runs again."""

    folder: Path

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="falsework-test-graph-"))
        self.fact = 0
        self.now = START
        self.made = 0
        self.theirs: dict[str, bytes | None] = {}
        self.run()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def graph(self) -> Graph:
        def key(given: Given) -> Files:
            self.made += 1
            return {"key": f"{self.made} {given.now.isoformat()}".encode(), "pub": str(self.made).encode()}

        def life(files: Files) -> Life:
            begins = START.fromisoformat(files["key"].split()[1].decode())
            return Life(begins, begins + DAY)

        def note(path: str, fact: int) -> Asset:
            def make(given: Given) -> Files:
                return {path: b"%d of %s" % (fact, given.files("key")["key"])}

            return Asset(path, make, {"fact": fact}, ("key",), editable=True)

        def summary(given: Given) -> Files:
            return {"all": b"\n".join(path.encode() + b"=" + text for path, text in given.folder("notes").items())}

        notes = [note(path, self.fact * index) for index, path in enumerate(PATHS)]
        return Graph(
            [Asset("key", key, once=True, life=life), *notes, Asset("all", summary, {}, ("key",), ("notes",))],
            self.folder,
            at(self.now),
        )

    @rule()
    def run(self) -> None:
        graph = self.graph()
        graph.bring_up_to_date(graph.assets)
        again = graph.bring_up_to_date(graph.assets)
        assert (again.made, again.written, again.removed, again.warnings) == ({}, (), (), ())
        number, made_at = (self.folder / "key").read_text().split()
        assert (self.folder / "pub").read_text() == number, "a pair is never torn apart"
        assert self.now < START.fromisoformat(made_at) + DAY * 2 / 3, "nothing near its end is left"
        present = {str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.glob("notes/*")}
        for index, path in enumerate(PATHS):
            if path not in self.theirs:
                assert present[path] == b"%d of %s" % (self.fact * index, (self.folder / "key").read_bytes())
        whole = b"\n".join(path.encode() + b"=" + text for path, text in sorted(present.items()))
        assert (self.folder / "all").read_bytes() == whole

    @rule(path=st.sampled_from([*PATHS, "notes/mine.yaml"]), text=st.binary(max_size=4))
    def edit(self, path: str, text: bytes) -> None:
        (self.folder / path).write_bytes(b"mine " + text)
        self.theirs[path] = b"mine " + text

    @rule(path=st.sampled_from(PATHS))
    def delete(self, path: str) -> None:
        if (self.folder / path).exists():
            (self.folder / path).unlink()
            self.theirs[path] = None

    @rule(fact=st.integers(0, 2))
    def change_the_site(self, fact: int) -> None:
        self.fact = fact

    @rule(hours=st.integers(1, 30))
    def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule(survived=st.integers(0, 6))
    def be_killed(self, survived: int) -> None:
        left = [survived]

        def write(path: Path, content: bytes, mode: int) -> None:
            if not left[0]:
                raise Killed
            left[0] -= 1
            write_file(path, content, mode)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graph_module, "write_file", write)
            patch.setattr(graph_module, "_WRITERS", 1)
            graph = self.graph()
            try:
                graph.bring_up_to_date(graph.assets)
            except Killed:
                return

    @invariant()
    def what_is_theirs_stays(self) -> None:
        for path, text in getattr(self, "theirs", {}).items():
            found = (self.folder / path).read_bytes() if (self.folder / path).exists() else None
            assert found == text, path


TestPerson: Any = Person.TestCase
TestPerson.settings = settings(
    max_examples=10, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
