"""A request another program wrote."""

from __future__ import annotations

import subprocess
from ipaddress import ip_address

from falsework.csr.pkcs10 import Asked, read_request

NODE = "system:node:master-0.lab.falsework.test"


def test_as_openssl_writes_it() -> None:
    done = subprocess.run(
        [
            *("openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null"),
            *("-subj", f"/O=system:nodes/CN={NODE}", "-addext", "subjectAltName=DNS:a.example,IP:2001:db8::1"),
        ],
        capture_output=True,
        check=True,
    )
    asked = read_request(done.stdout)
    assert asked == Asked(NODE, ("system:nodes",), ("a.example",), (ip_address("2001:db8::1"),))
