"""The real registry with the configuration, certificate and password the operator gives it, and a real containerd
that knows of it what nodes are told."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from real_api import free_port

from falsework.operators.image_registry import certificates, credentials, registry
from falsework.operators.image_registry.names import INTERNAL_HOST, SERVICE, Place
from falsework.operators.image_registry.node_ca import write_registries
from falsework.operators.image_registry.node_registries import NodeRegistry
from falsework.operators.image_registry.settings import settings_of
from falsework.process import CommandError, daemon, run
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.inventory import Release
from oci_push import Registry, push

PLACE = Place(("127.0.0.1",), "")


@dataclass(frozen=True)
class Served:
    registry: Registry
    login: credentials.Files
    log: Path


@pytest.fixture
def served(release: Release, programs: Path, tmp_path: Path) -> Iterator[Served]:
    now, port = datetime.now(UTC), free_port()
    signer = certificates.signer({}, now)
    authority = signer["tls.crt"].decode()
    login = credentials.login({}, PLACE.hosts)
    private = credentials.private({}, login)
    serving = certificates.serving({}, signer, authority, PLACE.addresses, now, known=False)
    for name, content in {**private, **serving}.items():
        (tmp_path / name).write_bytes(content)
    config = registry.config(settings_of({"spec": {"storage": {"emptyDir": {}}}}))
    config["storage"]["filesystem"]["rootdirectory"] = str(tmp_path / "images")
    config["http"] |= {"addr": f"127.0.0.1:{port}"}
    config["http"]["tls"] = {"certificate": str(tmp_path / "tls.crt"), "key": str(tmp_path / "tls.key")}
    config["auth"]["htpasswd"]["path"] = str(tmp_path / "htpasswd")
    (tmp_path / registry.CONFIG_FILE).write_text(json.dumps(config))
    program, log = release.install("registry", programs), tmp_path / "registry.log"
    argv = ("setpriv", "--pdeathsig", "KILL", "--", program, "serve", tmp_path / registry.CONFIG_FILE)
    env = {"OTEL_TRACES_EXPORTER": "none", "REGISTRY_HTTP_SECRET": private["http-secret"].decode()}
    found = Registry(SERVICE, port, authority, address="127.0.0.1")
    with log.open("wb") as output, subprocess.Popen(argv, stdout=output, stderr=output, env=os.environ | env) as child:
        try:
            _until_answered(found, log)
            yield Served(found, login, log)
        finally:
            child.terminate()


def _until_answered(found: Registry, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            # As the kubelet asks: nobody in particular.
            assert found.ask("GET", "/")[0] == 200
            return
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)


def test_an_image_that_was_pushed_is_pulled_by_a_node(
    served: Served, release: Release, cache: Cache, programs: Path, tmp_path: Path
) -> None:
    password = served.login["password"].decode()
    assert served.registry.ask("GET", "/v2/")[0] == 401
    assert replace(served.registry, login=(credentials.USER, "guessed")).ask("GET", "/v2/")[0] == 401
    with_login = replace(served.registry, login=(credentials.USER, password))
    digest = push(with_login, release.images["pause"], cache, "team/pause", "1")
    assert with_login.ask("HEAD", f"/v2/team/pause/manifests/{digest}", headers={"Accept": oci.MANIFEST})[0] == 200

    # What the node-ca pods write, where this containerd looks.
    folder = tmp_path / "certs.d"
    folder.mkdir()
    url = f"https://127.0.0.1:{served.registry.port}"
    told = NodeRegistry(INTERNAL_HOST, url, served.registry.authority, credentials.authorization(served.login))
    image = f"{INTERNAL_HOST}/team/pause@{digest}"
    with ExitStack() as stack:
        crictl = _containerd(stack, release, programs, tmp_path, folder)
        write_registries(folder, [replace(told, authorization="Basic bm86Ym9keQ==")], folder)
        with pytest.raises(CommandError) as refused:
            run((*crictl, "pull", image))
        assert "authorization failed" in refused.value.finished.complaints
        write_registries(folder, [told], folder)
        assert "Image is up to date" in run((*crictl, "pull", image)).output
    assert password not in served.log.read_text()


def _containerd(
    stack: ExitStack, release: Release, programs: Path, tmp_path: Path, registries: Path
) -> tuple[str | Path, ...]:
    for name in ("containerd", "crictl"):
        release.install(name, programs)
    socket, log = tmp_path / "socket", tmp_path / "containerd.log"
    config = tmp_path / "config.toml"
    config.write_text(
        f'version = 3\nroot = "{tmp_path}/root"\nstate = "{tmp_path}/state"\n'
        f'[grpc]\naddress = "{socket}"\n[ttrpc]\naddress = "{tmp_path}/ttrpc"\n'
        f'[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "{registries}"\n'
    )
    isolated = ("unshare", "--mount", "--propagation", "private")
    stack.enter_context(daemon((*isolated, programs / "containerd", "--config", config), log=log))
    endpoints = (f"--image-endpoint=unix://{socket}", f"--runtime-endpoint=unix://{socket}")
    return (programs / "crictl", "--timeout=60s", *endpoints)
