"""Namespace machines on other kinds of hosts than this one: cgroup v2 only, with systemd as PID 1 and without it.

Takes twenty minutes where processors must be emulated, so it is no part of `all`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import virtual_host
from virtual_host import VirtualHost

from falsework.assets.catalogue import Step, create
from falsework.progress import Progress
from falsework.release.build import build_release
from falsework.release.cache import Cache, default_root
from falsework.release.payload import load_payload
from falsework.site.load import default_site

ROOT = Path(__file__).parents[2]
MACHINES = ROOT / "tests/component/machines"
INSIDE = Path(__file__).parent / "inside"
PLACE = "/opt/falsework"


@pytest.fixture(scope="module")
def host() -> Iterator[VirtualHost]:
    cache = Cache(default_root(), print)
    with Progress() as progress:
        release = build_release(load_payload(), cache, progress)
    with tempfile.TemporaryDirectory(dir=cache.root.parent, prefix="falsework-soak-") as name:
        folder = Path(name)
        create(default_site(), folder / "site", Step.ALL)
        content = {
            f"{PLACE}/src": ROOT / "src",
            f"{PLACE}/site": folder / "site",
            "/var/cache/falsework/os": release.os_root,
            "/var/cache/falsework/image-store": release.image_store,
            "/etc/systemd/system/soak.service": INSIDE / "soak.service",
            **{f"{PLACE}/{name}": INSIDE / name for name in ("tests.sh", "plain-init.sh")},
            **{f"{PLACE}/tests/{name}": INSIDE / name for name in ("soak_fixtures.py", "whole_life.py")},
            **{f"{PLACE}/tests/{name}": MACHINES / name for name in ("test_cgroups.py", "test_nspawn.py")},
        }
        yield virtual_host.build(folder, content, ["/etc/systemd/system/soak.service"], print)


@pytest.mark.parametrize("init", ["/sbin/init", f"{PLACE}/plain-init.sh"], ids=["systemd", "plain"])
def test_machines_on_a_host_with_cgroup_v2(host: VirtualHost, init: str, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        with capfd.disabled():
            print(line, flush=True)

    host.run(init, say)
    assert "tests ended with 0" in [line.strip() for line in said], host.console()
