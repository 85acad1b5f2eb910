import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from falsework.errors import FalseworkError
from falsework.files import explained_disk_errors, holder_of, is_draft, new_file, only_one, write_file
from falsework.process import run


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")
    with contextlib.suppress(RuntimeError), new_file(path) as file:
        file.write(b"half of the new")
        raise RuntimeError("killed")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path], "the draft is gone"


def test_a_file_has_its_mode_from_the_start(tmp_path: Path) -> None:
    write_file(tmp_path / "secret", b"x", 0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_the_second_waits_for_the_first_and_is_told_who_it_is(tmp_path: Path) -> None:
    told: list[str] = []
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        def busy(owner: str) -> None:
            told.append(owner)
            waiting.set()

        with only_one(tmp_path / "lock", busy):
            order.append("second")

    thread = threading.Thread(target=second)
    with only_one(tmp_path / "lock", told.append):
        thread.start()
        assert waiting.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert told == [f"process {os.getpid()}"]


@pytest.mark.parametrize(
    "fill",
    [
        lambda: Path("/dev/full").write_bytes(b"x" * 10000),
        lambda: run(("dd", "if=/dev/zero", "of=/dev/full", "count=1")),
    ],
    ids=["by ourselves", "by a program we run"],
)
def test_a_full_disk_is_a_sentence_that_says_what_to_do(fill: Callable[[], object]) -> None:
    with pytest.raises(FalseworkError) as caught, explained_disk_errors(Path("/x"), "needs 5 GB"):
        fill()
    assert caught.value.what == "the disk that holds /x is full"
    assert caught.value.cause == "needs 5 GB"
    assert "FALSEWORK_CACHE" in (caught.value.fix or "")


def test_a_folder_can_be_its_own_lock_and_nothing_is_written_in_it(tmp_path: Path) -> None:
    with only_one(tmp_path, lambda _: None):
        assert holder_of(tmp_path) == "another process"
        assert list(tmp_path.iterdir()) == []
    assert holder_of(tmp_path) is None


def test_a_lock_file_that_its_holder_removed_keeps_nobody_out_and_lets_nobody_in_twice(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    waiting, inside, leave = threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        with only_one(lock, lambda _: waiting.set()):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=second)
    with only_one(lock, lambda _: None):
        assert holder_of(lock) == f"process {os.getpid()}"
        thread.start()
        assert waiting.wait(60)
        lock.unlink()
        assert holder_of(lock) is None
    assert inside.wait(60)
    assert lock.exists(), "the one that waited holds a lock that others can see"
    assert holder_of(lock) == f"process {os.getpid()}"
    leave.set()
    thread.join(60)


@pytest.mark.parametrize(
    ("name", "draft"), [(".bootkube.done", False), (".x.yaml.a1b2c3_4", True), ("x.a1b2c3_4", False)]
)
def test_drafts_are_told_from_files(name: str, draft: bool) -> None:
    assert is_draft(name) is draft


def test_a_draft_is_called_so(tmp_path: Path) -> None:
    with new_file(tmp_path / "file"):
        (found,) = tmp_path.iterdir()
        assert is_draft(found.name)
