"""How a pod reaches the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsework.assets.catalogue import Step, create
from falsework.errors import FalseworkError
from falsework.kube import access
from falsework.site.load import default_site

URL = "# of the node\nKUBERNETES_SERVICE_HOST='api-int.ocp4.example.com'\nKUBERNETES_SERVICE_PORT='6443'\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("assets")
    create(default_site(), folder, Step.ALL)
    return (folder / "tls" / "root-ca.crt").read_bytes()


@pytest.fixture
def pod(tmp_path: Path, authority: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ca.crt").write_bytes(authority)
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setattr(access, "POD_SECRETS", tmp_path)
    monkeypatch.setattr(access, "API_SERVER_URL", tmp_path / "apiserver-url.env")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "172.30.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


def test_by_the_load_balancer_if_the_node_says_where_it_is(pod: Path) -> None:
    (pod / "apiserver-url.env").write_text(URL)
    found = access.from_pod()
    assert (found.url, found.server_name) == ("https://api-int.ocp4.example.com:6443", "api-int.ocp4.example.com")
    assert found.bearer() == "s3cret"
    assert "s3cret" not in repr(found)


def test_by_the_service_otherwise(pod: Path) -> None:
    assert access.from_pod().url == "https://172.30.0.1:443"


def test_where_there_is_neither(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(FalseworkError, match="no pod"):
        access.from_pod()


def test_whom_to_trust_must_be_known(pod: Path) -> None:
    (pod / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(FalseworkError, match=r"ca\.crt cannot be used"):
        access.from_pod()
    (pod / "ca.crt").unlink()
    with pytest.raises(FalseworkError, match=r"ca\.crt cannot be used"):
        access.from_pod()
