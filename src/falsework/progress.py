"""What a person sees while several things are under way: a line for each at a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Self, TextIO


class Task:
    def __init__(self, name: str) -> None:
        self.name = name
        self.started = time.monotonic()
        self.doing = ""

    def elapsed(self) -> float:
        return time.monotonic() - self.started


class Progress:
    """Prints to stderr, so that a command's own output can be piped. Safe to use from many threads."""

    def __init__(self, stream: TextIO | None = None, *, heartbeat: float = 60.0) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._tasks: list[Task] = []
        self._lines_drawn = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._heartbeat = 0.2 if self._live else heartbeat
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._ticker:
            self._ticker.join()
        with self._lock:
            self._erase()

    def say(self, sentence: str) -> None:
        with self._lock:
            self._print(f"  {sentence}")

    @contextlib.contextmanager
    def task(self, name: str, *, worth_telling: float = 0.0) -> Iterator[Task]:
        """Shows `name` as being under way and, when the block ends, how long it took; where it mostly finds its work
        done, only if that was longer than `worth_telling`."""
        task = Task(name)
        with self._lock:
            self._tasks.append(task)
            self._draw()
        try:
            yield task
        except BaseException:
            self._end(task, "failed")
            raise
        self._end(task, task.doing or "done", worth_telling)

    def _end(self, task: Task, outcome: str, worth_telling: float = 0.0) -> None:
        with self._lock:
            self._erase()
            self._tasks.remove(task)
            if task.elapsed() >= worth_telling:
                self._stream.write(f"  {task.name:<24} {task.elapsed():7.1f} s  {outcome}\n")
            self._draw()
            self._stream.flush()

    def _tick(self) -> None:
        while not self._stop.wait(self._heartbeat):
            with self._lock:
                if self._live:
                    self._erase()
                    self._draw()
                else:
                    for task in self._tasks:
                        self._print(f"  {task.name:<24} {task.elapsed():7.0f} s  {task.doing or 'at work'} …")

    def _print(self, line: str) -> None:
        self._erase()
        self._stream.write(line + "\n")
        self._draw()
        self._stream.flush()

    def _draw(self) -> None:
        if not self._live:
            return
        for task in self._tasks:
            self._stream.write(f"· {task.name:<24} {task.elapsed():7.1f} s  {task.doing}\n")
        self._lines_drawn = len(self._tasks)
        self._stream.flush()

    def _erase(self) -> None:
        if self._lines_drawn:
            self._stream.write(f"\x1b[{self._lines_drawn}A\x1b[J")
            self._lines_drawn = 0
