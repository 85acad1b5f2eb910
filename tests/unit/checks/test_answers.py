"""How a name server's answer is read."""

from __future__ import annotations

import socket
import struct
import threading

import pytest

from falsework.checks import answers

WRITTEN_OUT = b"\x03api\x04test\x00"
POINTER = b"\xc0\x0c"


@pytest.mark.parametrize("name", [WRITTEN_OUT, POINTER])
def test_the_name_in_an_answer_is_written_out_or_pointed_to(name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            question, client = server.recvfrom(4096)
            head = question[:2] + struct.pack(">5H", 0x8180, 1, 1, 0, 0)
            record = name + struct.pack(">2HIH", 1, 1, 5, 4) + socket.inet_aton("192.0.2.7")
            server.sendto(head + question[12:] + record, client)

        monkeypatch.setattr(answers, "_DNS", server.getsockname()[1])
        monkeypatch.setattr(answers, "PATIENCE", 60.0)
        threading.Thread(target=answer, daemon=True).start()
        assert answers._address_of("127.0.0.1", "api.test") == "192.0.2.7"
