"""/healthz and /metrics, for the kubelet and whoever measures, on the node's loopback alone."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from falsework.errors import FalseworkError
from falsework.operators.runtime.program import Program

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ASKING = 10.0
"""Seconds a client has for its request."""

Sample = tuple[str, float]
"""The controller it is about (empty: the process), and the value."""


class Health:
    def __init__(self, program: Program, is_leader: Callable[[], bool], address: str, port: int) -> None:
        self._program = program
        self._is_leader = is_leader
        health = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _ASKING

            def do_GET(self) -> None:
                status, text = health.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", _TEXT)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                """The kubelet asks all the time: nobody wants to read that."""

        try:
            self._server = ThreadingHTTPServer((address, port), Handler)
        except OSError as error:
            raise FalseworkError(
                f"{address}:{port} cannot be listened on", cause=str(error.strerror), fix="name another: --listen"
            ) from None
        self._server.daemon_threads = True
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="health", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        # Whoever waits for the next client is told that there will be none.
        self._server.socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        """Not `serve_forever`, which looks twice a second whether it is to end."""
        while not self._ended.is_set():
            self._server.handle_request()

    def answer(self, path: str) -> tuple[HTTPStatus, str]:
        match path.partition("?")[0]:
            case "/healthz" | "/livez" | "/readyz":
                hanging = self._program.hanging(time.monotonic())
                return (HTTPStatus.INTERNAL_SERVER_ERROR, f"{hanging}\n") if hanging else (HTTPStatus.OK, "ok\n")
            case "/metrics":
                return HTTPStatus.OK, self._metrics()
            case _:
                return HTTPStatus.NOT_FOUND, "here are /healthz and /metrics\n"

    def _metrics(self) -> str:
        workers = self._program.workers
        counts = {worker.name: worker.count for worker in workers}
        usage = resource.getrusage(resource.RUSAGE_SELF)
        families: list[tuple[str, str, str, Iterable[Sample]]] = [
            (
                "falsework_controller_syncs_total",
                "counter",
                "Looks at the world.",
                [(name, one.syncs) for name, one in counts.items()],
            ),
            (
                "falsework_controller_failures_total",
                "counter",
                "Those that failed, and were tried again.",
                [(name, one.failures) for name, one in counts.items()],
            ),
            (
                "falsework_controller_sync_seconds_total",
                "counter",
                "Time spent in them.",
                [(name, one.seconds) for name, one in counts.items()],
            ),
            (
                "falsework_controller_queue_depth",
                "gauge",
                "Keys to be looked at, now or later.",
                [(worker.name, worker.waiting) for worker in workers],
            ),
            ("falsework_leader", "gauge", "Whether this process does the work.", [("", float(self._is_leader()))]),
            (
                "process_cpu_seconds_total",
                "counter",
                "Processor time of this process.",
                [("", usage.ru_utime + usage.ru_stime)],
            ),
            ("process_resident_memory_bytes", "gauge", "Memory of this process.", [("", _resident())]),
        ]
        return "".join(_family(*family) for family in families)


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for controller, value in samples:
        label = f'{{controller="{controller}"}}' if controller else ""
        lines.append(f"{name}{label} {value:.10g}")
    return "\n".join(lines) + "\n"


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
