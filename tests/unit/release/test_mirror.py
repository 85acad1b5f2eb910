import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from falsework import retry
from falsework.errors import FalseworkError
from falsework.release.cache import Cache
from falsework.release.mirror import fetch_into, open_mirror

CONTENT = b"a blob"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Answers with these status codes in turn, then with 200."""

    answers: list[int]
    paths: list[str]
    body = CONTENT


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(retry.persist, "__kwdefaults__", {"pauses": (0.0, 0.0)})
    with Server(("127.0.0.1", 0), Handler) as server:
        server.answers, server.paths = [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, said: list[str]) -> Cache:
    return Cache(tmp_path / "cache", said.append)


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/"


def test_a_blob_is_fetched_by_its_digest(server: Server, cache: Cache, said: list[str]) -> None:
    assert fetch_into(cache, open_mirror(address(server), said.append), DIGEST, "blob") == cache.path_of(DIGEST)
    assert server.paths == [f"/blobs/sha256/{DIGEST}"]


def test_a_busy_mirror_is_asked_again(server: Server, cache: Cache, said: list[str]) -> None:
    server.answers = [429, 503]
    assert fetch_into(cache, open_mirror(address(server), said.append), DIGEST, "blob") is not None
    assert len(said) == 2


def test_what_a_mirror_does_not_have_is_none(server: Server, cache: Cache, said: list[str]) -> None:
    server.answers = [404]
    assert fetch_into(cache, open_mirror(address(server), said.append), DIGEST, "blob") is None


def test_wrong_content_is_refused(server: Server, cache: Cache, said: list[str]) -> None:
    server.body = b"another blob"
    assert fetch_into(cache, open_mirror(address(server), said.append), DIGEST, "blob") is None
    assert "the mirror's copy was refused" in said[0]
    assert not cache.path_of(DIGEST).exists()


def test_a_mirror_that_does_not_answer_is_named(server: Server, cache: Cache, said: list[str]) -> None:
    server.answers = [500] * 3
    with pytest.raises(FalseworkError, match="answered with a server error, 3 times in a row"):
        fetch_into(cache, open_mirror(address(server), said.append), DIGEST, "blob")


def test_a_folder_that_is_no_mirror_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FalseworkError, match="is not a mirror"):
        open_mirror(str(tmp_path), print)
