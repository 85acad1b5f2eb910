"""Pushes an image of the release to a registry, by HTTP, as any client does.

push(registry, release.images["pause"], cache, "team/pause", "1")
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlencode, urlsplit

from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.oci import Image


@dataclass(frozen=True)
class Registry:
    """`authority` is whom to trust, as PEM; `login` a user and his password; `address` where it is, if its name cannot
    be resolved here; `name` what the certificate is to be for."""

    name: str
    port: int
    authority: str
    login: tuple[str, str] | None = None
    address: str = ""

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Message, bytes]:
        """The status, the headers (a proxy may spell them otherwise) and the content of the answer."""
        connection = _NamedConnection(self)
        sent = {"Host": f"{self.name}:{self.port}", **(headers or {})}
        if self.login is not None:
            sent["Authorization"] = f"Basic {base64.b64encode(':'.join(self.login).encode()).decode()}"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


class _NamedConnection(http.client.HTTPSConnection):
    """To an address, with the name of whom is meant."""

    def __init__(self, registry: Registry) -> None:
        self._context_of_it = ssl.create_default_context(cadata=registry.authority)
        super().__init__(registry.address or registry.name, registry.port, timeout=60, context=self._context_of_it)
        self._server_name = registry.name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context_of_it.wrap_socket(self.sock, server_hostname=self._server_name)


def push(registry: Registry, image: Image, cache: Cache, repository: str, tag: str) -> str:
    """The digest by which it can be pulled."""
    manifest, *blobs = oci.blobs_of(cache, image)
    for digest in blobs:
        _push_blob(registry, repository, digest, cache.path_of(digest).read_bytes())
    status, _, answer = registry.ask(
        "PUT",
        f"/v2/{repository}/manifests/{tag}",
        cache.path_of(manifest).read_bytes(),
        {"Content-Type": oci.MANIFEST},
    )
    assert status == 201, (status, answer)
    return f"sha256:{manifest}"


def _push_blob(registry: Registry, repository: str, digest: str, content: bytes) -> None:
    if registry.ask("HEAD", f"/v2/{repository}/blobs/sha256:{digest}")[0] == 200:
        return
    status, headers, answer = registry.ask("POST", f"/v2/{repository}/blobs/uploads/", b"")
    assert status == 202, (status, answer)
    place = urlsplit(headers["Location"])
    query = "&".join(filter(None, (place.query, urlencode({"digest": f"sha256:{digest}"}))))
    kind = {"Content-Type": "application/octet-stream"}
    status, _, answer = registry.ask("PUT", f"{place.path}?{query}", content, kind)
    assert status == 201, (status, answer)
