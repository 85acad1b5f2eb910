"""etcd from one member to four to three, with real etcds and what goes wrong on the way."""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_etcd import BOOTSTRAP, MASTERS, RealEtcd

from falsework.bootstrap.etcd_hand_over import EtcdHandOver
from falsework.errors import FalseworkError
from falsework.etcd import wal
from falsework.operators.etcd import decision
from falsework.operators.etcd.membership import Masters
from falsework.operators.etcd.removal import BootstrapRemoval
from falsework.operators.etcd.scaling import Outcome, Scaling
from falsework.operators.etcd.teardown import judge
from falsework.release.inventory import Release

KEYS = 1000


class Operator:
    """The part of the operator that talks to etcd, and a memory of what it said."""

    def __init__(self, etcd: RealEtcd) -> None:
        self.etcd = etcd
        self.said: list[str] = []
        self.events: list[str] = []
        self.start_anew()

    def start_anew(self) -> None:
        self._scaling = Scaling(self.etcd.gateway, self.tell)

    def tell(self, reason: str, message: str) -> None:
        self.events.append(reason)
        self.said.append(message)

    def run(self, *waiting: str, destroyed: tuple[str, ...] = (), gone: tuple[str, ...] = ()) -> Outcome:
        known = {name: self.etcd.addresses[name] for name in MASTERS if name not in gone}
        return self._scaling.run(Masters(known, waiting, destroyed))

    def add(self, *names: str) -> None:
        """As if the others were not there yet."""
        self.run(*names, gone=tuple(name for name in MASTERS if name not in names))

    def until_voters(self, *names: str, waiting: tuple[str, ...] = ()) -> None:
        def good() -> bool:
            return not self.run(*waiting).view.faults and self.etcd.voters() == set(names)

        self.etcd.until(f"{names} vote", good)


@pytest.fixture
def etcd(release: Release, programs: Path, tmp_path: Path) -> Iterator[RealEtcd]:
    with RealEtcd.in_folder(release.install("etcd", programs), tmp_path) as running:
        yield running


@pytest.fixture
def operator(etcd: RealEtcd) -> Operator:
    return Operator(etcd)


def put_keys(etcd: RealEtcd) -> None:
    keys = [base64.b64encode(f"key-{number:04}".encode()).decode() for number in range(KEYS)]
    for first in range(0, KEYS, 100):
        puts = [{"request_put": {"key": key, "value": key}} for key in keys[first : first + 100]]
        etcd.gateway.ask("kv/txn", {"success": puts})


def count(etcd: RealEtcd) -> int:
    prefix, end = (base64.b64encode(text).decode() for text in (b"key-", b"key."))
    return int(etcd.gateway.ask("kv/range", {"key": prefix, "range_end": end, "count_only": True})["count"])


def test_one_to_four_to_three(etcd: RealEtcd, operator: Operator) -> None:
    """All masters at once; the operator is killed between adding and promoting; a master too; no key is lost."""
    put_keys(etcd)
    pods = {name: etcd.discover(name) for name in MASTERS}
    operator.run(*MASTERS)
    added = [line.partition(" (")[0] for line in operator.said]
    assert added == [f"Adding member {name}" for name in MASTERS]
    assert len(etcd.gateway.members()) == 4
    operator.start_anew()
    for name, pod in pods.items():
        pod.finish()
        etcd.start(name)
    etcd.until("a master is a learner that runs", lambda: etcd.member("master-1").is_started)
    etcd.kill("master-1")
    etcd.start("master-1")
    # Too early: there are not four yet.
    assert judge(etcd.gateway.look(), "HighlyAvailable").missing is not None
    operator.until_voters(BOOTSTRAP, *MASTERS)
    assert {f"Member {name} started" for name in MASTERS} <= set(operator.said)
    assert operator.events.count("MemberPromote") == 3
    assert {wal.identity(etcd.data(name)).member for name in MASTERS} == {  # type: ignore[union-attr]
        etcd.member(name).id for name in MASTERS
    }

    # The bootstrap leads; it hands over before it goes.
    bootstrap = etcd.member(BOOTSTRAP)
    etcd.until("it may go", lambda: judge(etcd.gateway.look(), "HighlyAvailable").missing is None)
    etcd.let_the_bootstrap_lead()
    removal = BootstrapRemoval(etcd.gateway, operator.tell)

    def gone() -> bool:
        return removal.attempt(etcd.gateway.look(), bootstrap) is None

    etcd.until("etcd lets the bootstrap go", gone)
    assert operator.events[-3:] == ["RemoveBootstrapMember", "MoveLeader", "BootstrapMemberRemoved"]
    assert etcd.voters() == set(MASTERS)
    assert etcd.gateway.leader() in {etcd.member(name).id for name in MASTERS}
    assert count(etcd) == KEYS


def until_it_waits(etcd: RealEtcd, name: str) -> None:
    etcd.until(f"{name} waits", lambda: "is not in the member list yet" in etcd.log_of(name))


def test_three_that_are_started_together_do_not_wait_for_each_other(etcd: RealEtcd, operator: Operator) -> None:
    """Each as its pod does it. Were they to join at the same moment, each would wait seven seconds for another that
    waits as well: etcd asks all listed members before it answers any."""
    for name in MASTERS:
        etcd.run_pod(name)
    for name in MASTERS:
        until_it_waits(etcd, name)
    # Whether they meet is a matter of milliseconds, so nothing can be told from the time: the first one sleeps until
    # the others have said that they wait for it.
    first, *others = MASTERS
    etcd.send(first, signal.SIGSTOP)
    operator.run(*MASTERS)
    for name in others:
        etcd.until(f"{name} waits for its turn", lambda name=name: "starts first" in etcd.log_of(name))  # type: ignore[misc]
    etcd.send(first, signal.SIGCONT)
    operator.until_voters(BOOTSTRAP, *MASTERS)
    # A restart finds out anew what to do, and what is stopped says so.
    etcd.until("master-2 has caught up", lambda: etcd.is_etcd("master-2"))
    assert etcd.kill("master-2", signal.SIGTERM) in (0, -signal.SIGTERM)
    etcd.run_pod("master-2")
    operator.until_voters(BOOTSTRAP, *MASTERS)


def test_a_pod_that_waits_ends_when_it_is_told(etcd: RealEtcd) -> None:
    etcd.run_pod("master-0")
    until_it_waits(etcd, "master-0")
    assert etcd.kill("master-0", signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_learner_that_never_starts_holds_nobody_up_for_long(etcd: RealEtcd) -> None:
    now = [0.0]
    said: list[str] = []
    scaling = Scaling(etcd.gateway, lambda _, message: said.append(message), clock=lambda: now[0])
    masters = {name: etcd.addresses[name] for name in MASTERS}
    assert "may come in a moment" in scaling.run(Masters(masters, ["master-1"])).waits
    now[0] = 7.0
    scaling.run(Masters(masters, ["master-1"]))
    # It may be starting: it counts members, so nobody is added now.
    now[0] = 8.0
    scaling.run(Masters(masters, ["master-0"]))
    now[0] = 15.0
    held = scaling.run(Masters(masters, ["master-0"]))
    assert "must have started" in held.waits
    assert held.pause is not None
    now[0] = 60.0
    assert len(scaling.run(Masters(masters, ["master-0"])).view.members) == 3
    etcd.join("master-0")

    def votes() -> bool:
        scaling.run(Masters(masters))
        return etcd.voters() == {BOOTSTRAP, "master-0"}

    etcd.until("master-0 votes", votes)
    # Its node is gone for good: then so is the learner.
    del masters["master-1"]
    scaling.run(Masters(masters))
    assert len(etcd.gateway.members()) == 2
    assert "Removed member" in said[-1]


def test_a_member_whose_data_is_gone_is_removed_and_joins_again(etcd: RealEtcd, operator: Operator) -> None:
    operator.add("master-0", "master-1")
    etcd.join("master-0")
    etcd.join("master-1")
    operator.until_voters(BOOTSTRAP, "master-0", "master-1")
    first = etcd.member("master-0")
    etcd.kill("master-0")
    shutil.rmtree(etcd.data("master-0"))
    with pytest.raises(FalseworkError, match=decision.DESTROYED):
        etcd.discover("master-0").finish()

    def removed() -> bool:
        operator.run(destroyed=("master-0",))
        return etcd.voters() == {BOOTSTRAP, "master-1"}

    etcd.until("it is removed", removed)
    pod = etcd.discover("master-0")

    def added() -> bool:
        operator.run("master-0")
        return len(etcd.gateway.members()) == 3

    etcd.until("it is added again", added)
    pod.finish()
    etcd.start("master-0")
    operator.until_voters(BOOTSTRAP, "master-0", "master-1")
    assert etcd.member("master-0").id != first.id


def test_an_earlier_life_is_archived_and_a_restart_needs_nobody(etcd: RealEtcd, operator: Operator) -> None:
    left_over = etcd.data("master-0") / "member" / "snap"
    left_over.mkdir(parents=True)
    operator.add("master-0")
    etcd.join("master-0")
    operator.until_voters(BOOTSTRAP, "master-0")
    assert len(list(etcd.data("master-0").glob("member-removed-archive-*"))) == 1
    # Both go away at once, as after a power failure: each starts with what it has, though nobody answers.
    etcd.kill("master-0")
    etcd.kill(BOOTSTRAP)
    etcd.join("master-0")
    etcd.start(BOOTSTRAP)
    operator.until_voters(BOOTSTRAP, "master-0")


def test_a_master_leads_before_anybody_else_writes(etcd: RealEtcd, operator: Operator) -> None:
    """Nothing is written while leadership moves: it would be lost."""
    held: list[str] = []

    @contextlib.contextmanager
    def hold() -> Iterator[None]:
        held.append(leading(etcd))
        yield
        held.append(leading(etcd))

    hand_over = EtcdHandOver(etcd.gateway, len(MASTERS), operator.said.append, hold)
    assert "less than two" in str(hand_over.missing())
    pods = {name: etcd.discover(name) for name in MASTERS}
    operator.run(*MASTERS)
    for name, pod in pods.items():
        pod.finish()
        etcd.start(name)
    operator.until_voters(BOOTSTRAP, *MASTERS)
    etcd.let_the_bootstrap_lead()
    etcd.until("a master leads", lambda: hand_over.missing() is None)
    assert held[0] == BOOTSTRAP
    assert held[-1] in MASTERS
    assert operator.said[-1] == f"{leading(etcd)} leads etcd"
    times = len(held)
    assert hand_over.missing() is None
    assert len(held) == times


def leading(etcd: RealEtcd) -> str:
    leader = etcd.gateway.leader()
    return next(member.name for member in etcd.gateway.members() if member.id == leader)
