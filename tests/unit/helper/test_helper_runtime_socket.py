"""The client of HAProxy's runtime socket, against one that answers as told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.errors import FalseworkError, UsageError
from falsework.helper.balancer import Balancer, Server, Status, as_table

HEAD = "# pxname,svname,scur,status,bck,check_status,last_chk,addr,"
ROWS = (
    "api,master-0,3,UP,0,L7OK,HTTP status check returned code <200>,10.0.0.10:6443,",
    "api,master-1,0,UP 1/2,0,* L4TOUT,,10.0.0.11:6443,",
    "api,bootstrap,0,DOWN,1,L4CON,,10.0.0.9:6443,",
    "machine-config-server,master-0,1,DRAIN,0,,,10.0.0.10:22623,",
    "ingress-http,worker-0,0,MAINT (resolution),0,,,10.0.0.20:80,",
    "ingress-http,worker-1,0,no check,0,,,10.0.0.21:80,",
)
STATE = "\n".join((HEAD, *ROWS)) + "\n\n"


@contextlib.contextmanager
def answering(path: Path, *answers: str | None) -> Iterator[list[str]]:
    """One answer for each connection; None stands for silence. Gives the commands that came."""
    heard: list[str] = []
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            for answer in answers:
                client, _ = listener.accept()
                heard.append(client.recv(65536).decode().strip())
                if answer is None:
                    held.append(client)
                else:
                    with client:
                        client.sendall(answer.encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        thread.join(5)
    for client in held:
        client.close()


def test_the_state_is_data(tmp_path: Path) -> None:
    with answering(tmp_path / "s", STATE):
        found = Balancer(tmp_path / "s").state()
    assert found[0] == Server(
        "api", "master-0", "10.0.0.10:6443", Status.UP, False, "L7OK HTTP status check returned code <200>", 3
    )
    assert [server.status.value for server in found] == ["UP", "UP", "DOWN", "DRAIN", "MAINT", "UP"]
    assert [server.name for server in found if server.backup] == ["bootstrap"]
    assert found[1].check == "L4TOUT"
    assert "L4CON (backup)" in as_table(found)


@pytest.mark.parametrize("state", ["drain", "ready", "maint"])
def test_a_machine_is_set_in_all_its_backends_at_once(tmp_path: Path, state: str) -> None:
    with answering(tmp_path / "s", STATE, "\n\n", STATE) as heard:
        changed = getattr(Balancer(tmp_path / "s"), state)("master-0")
    assert heard[1] == (
        f"set server api/master-0 state {state};set server machine-config-server/master-0 state {state}"
    )
    assert [server.backend for server in changed] == ["api", "machine-config-server"]


def test_a_machine_it_does_not_know(tmp_path: Path) -> None:
    with answering(tmp_path / "s", STATE), pytest.raises(UsageError, match="no server nobody") as caught:
        Balancer(tmp_path / "s").drain("nobody")
    assert "master-0, master-1" in str(caught.value)


def test_a_refusal_is_told(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "s", STATE, "Permission denied.\n\n"),
        pytest.raises(FalseworkError, match="did not make master-0 drain") as caught,
    ):
        Balancer(tmp_path / "s").drain("master-0")
    assert "Permission denied." in str(caught.value)


def test_silence_is_bounded(tmp_path: Path) -> None:
    with answering(tmp_path / "s", None), pytest.raises(FalseworkError, match="does not answer"):
        Balancer(tmp_path / "s", patience=0.05).state()


@pytest.mark.parametrize("answer", ["", "Unknown command\n", f"{HEAD}\napi,x,many,UP,0,,,a,\n", f"{HEAD}\nodd\n"])
def test_nonsense_is_told(tmp_path: Path, answer: str) -> None:
    with answering(tmp_path / "s", answer), pytest.raises(FalseworkError, match="does not answer"):
        Balancer(tmp_path / "s").state()


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(FalseworkError, match="does not answer") as caught:
        Balancer(tmp_path / "nothing").state()
    assert "No such file" in str(caught.value)
