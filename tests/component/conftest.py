"""The real release, brought onto this host once for all component tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_api import RealApi

from falsework.assets.serialize import to_yaml
from falsework.bootstrap.apply import apply_all
from falsework.host import packages
from falsework.manifests.release import api_manifests, config_manifests
from falsework.progress import Progress
from falsework.release.build import build_release
from falsework.release.cache import Cache, default_root
from falsework.release.inventory import Release
from falsework.release.payload import load_payload
from falsework.stages.check_host import HOST_PROGRAMS


@pytest.fixture(scope="session")
def cache() -> Cache:
    return Cache(default_root(), print)


@pytest.fixture(scope="session")
def beside_cache(cache: Cache) -> Iterator[Path]:
    """A folder on the cache's file system, where links to its files can be made; gone after the tests."""
    with tempfile.TemporaryDirectory(dir=cache.root.parent, prefix="falsework-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def release(cache: Cache, pytestconfig: pytest.Config) -> Release:
    assert os.geteuid() == 0, "the component tests run as root"
    packages.ensure((*HOST_PROGRAMS, "ps"), print)
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    # A first build takes minutes: its progress is shown, not kept.
    with capture.global_and_fixture_disabled(), Progress() as progress:
        return build_release(load_payload(), cache, progress)


@pytest.fixture(scope="session")
def programs(beside_cache: Path) -> Path:
    """Where programs of the release are installed for tests."""
    return beside_cache / "programs"


@pytest.fixture(scope="session")
def real_api(release: Release, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    """A Kubernetes API, for all tests that do not stop it."""
    with RealApi.in_folder(release, programs, tmp_path_factory.mktemp("real-api"), with_signer=True) as api:
        yield api


@pytest.fixture(scope="session")
def cluster_api(real_api: RealApi, tmp_path_factory: pytest.TempPathFactory) -> RealApi:
    """The same, with the definitions, namespaces and first objects that every cluster has."""
    folder = tmp_path_factory.mktemp("cluster-api")
    manifests = folder / "manifests"
    manifests.mkdir()
    for name, objects in {**api_manifests(), **config_manifests()}.items():
        (manifests / name).write_bytes(to_yaml(*objects))
    assert apply_all(real_api.client(), manifests, print, folder / "all.done") == []
    return real_api
