"""When the controller that lets the bootstrap's member go looks again."""

from __future__ import annotations

from typing import cast
from unittest.mock import MagicMock

from falsework.etcd.gateway import Gateway
from falsework.etcd.members import Member, View
from falsework.etcd.settings import BOOTSTRAP_MEMBER, client_url, peer_url
from falsework.operators.etcd.controllers import EtcdOperator

NAMES = (BOOTSTRAP_MEMBER, "master-0", "master-1", "master-2")
MEMBERS = tuple(
    Member(number, name, (peer_url(f"10.0.0.{number}"),), (client_url(f"10.0.0.{number}"),))
    for number, name in enumerate(NAMES, 1)
)
WELL = View(MEMBERS)
ILL = View(MEMBERS, {2: "it said nothing for too long"})


def pause_after(seen: View, on_the_board: View) -> float | None:
    operator = EtcdOperator(MagicMock())
    operator._board.put(on_the_board)
    operator._gateway = cast(Gateway, MagicMock())
    operator._gateway.look.return_value = seen  # type: ignore[attr-defined]
    return operator._tear_down("")


def test_what_it_alone_saw_is_looked_at_again_soon() -> None:
    """The board does not change when that passes, so nobody would wake it."""
    pause = pause_after(ILL, WELL)
    assert pause is not None
    assert pause < 5


def test_what_all_saw_is_waited_for() -> None:
    assert pause_after(ILL, ILL) is None
    assert pause_after(WELL, WELL) is None
