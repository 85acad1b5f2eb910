"""Which TCP ports of an address take a connection and which refuse one; the others do not answer at all. As JSON.

python port_scan.py ADDRESS SECONDS
"""

from __future__ import annotations

import errno
import json
import resource
import select
import socket
import sys
import time


def scan(address: str, seconds: float) -> dict[str, list[int]]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found: dict[str, list[int]] = {"open": [], "refused": []}
    batch = min(most, 20_000) - 100
    for first in range(1, 65536, batch):
        waiting: dict[int, tuple[socket.socket, int]] = {}
        poll = select.epoll()
        for port in range(first, min(first + batch, 65536)):
            client = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            client.connect_ex((address, port))
            waiting[client.fileno()] = (client, port)
            poll.register(client.fileno(), select.EPOLLOUT)
        deadline = time.monotonic() + seconds
        # Looked at once more when the time is over: it may have passed while others had the processor.
        is_over = False
        while not is_over:
            left = deadline - time.monotonic()
            is_over = left <= 0
            for number, _ in poll.poll(max(0.0, left), batch):
                client, port = waiting.pop(number)
                poll.unregister(number)
                error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error in (0, errno.ECONNREFUSED):
                    found["refused" if error else "open"].append(port)
                client.close()
        for client, _ in waiting.values():
            client.close()
        poll.close()
    return {name: sorted(ports) for name, ports in found.items()}


if __name__ == "__main__":
    print(json.dumps(scan(sys.argv[1], float(sys.argv[2]))))
