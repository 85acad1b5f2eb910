"""One question to a running HAProxy, by a socket of its command line, and the whole answer."""

from __future__ import annotations

import socket
import time
from pathlib import Path


def ask(path: Path, command: str, patience: float) -> str:
    """OSError if it cannot be asked; TimeoutError, which is one, if it does not come to an end in so many seconds."""
    deadline = time.monotonic() + patience
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.settimeout(patience)
        runtime.connect(str(path))
        runtime.sendall(f"{command}\n".encode())
        # That was all: the command line of a master would wait for more.
        runtime.shutdown(socket.SHUT_WR)
        while chunk := runtime.recv(65536):
            received += chunk
            # Not per chunk: a server that drips would hold us for ever.
            runtime.settimeout(max(0.001, deadline - time.monotonic()))
    return received.decode(errors="replace")
