"""Serves the files of a folder, by HTTPS when given a certificate; what the file `forbidden` lists is refused.

python config_server.py ADDRESS PORT FOLDER [CERTIFICATE]
"""

from __future__ import annotations

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main(address: str, port: str, folder: str, certificate: str = "") -> None:
    root = Path(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            forbidden = root / "forbidden"
            file = root / self.path.lstrip("/")
            if forbidden.exists() and self.path in forbidden.read_text().split():
                self.send_response(403)
                self.end_headers()
            elif file.is_file():
                self.send_response(200)
                self.end_headers()
                self.wfile.write(file.read_bytes())
            else:
                self.send_response(404)
                self.end_headers()

    server = ThreadingHTTPServer((address, int(port)), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
