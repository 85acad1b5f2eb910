"""A control plane's endpoint for load balancers: HTTPS, good or not as a file says, with its name as the answer.

python ready_server.py ADDRESS PORT CERTIFICATE READY_FILE NAME
"""

from __future__ import annotations

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main(address: str, port: str, certificate: str, ready_file: str, name: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            checked = self.path in ("/readyz", "/healthz")
            self.send_response(503 if checked and not Path(ready_file).exists() else 200)
            self.end_headers()
            self.wfile.write(name.encode())

    server = ThreadingHTTPServer((address, int(port)), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    # A handshake per connection, in its own thread: an open port that says nothing must not block the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
