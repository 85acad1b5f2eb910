"""The images Falsework writes, used by the containerd and runc of the same release."""

from __future__ import annotations

import json
import subprocess
import tarfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from falsework.process import daemon, run
from falsework.release import imagestore, oci
from falsework.release.cache import Cache
from falsework.release.imagestore import NAMESPACE
from falsework.release.inventory import Release
from falsework.release.payload import load_payload


class Containerd:
    def __init__(self, programs: Path, socket: Path) -> None:
        self.programs = programs
        self.ctr = (programs / "ctr", "--address", socket, "--namespace", NAMESPACE)

    def images(self) -> set[str]:
        return set(run((*self.ctr, "images", "list", "--quiet")).output.split())

    def run(self, image: str, *command: str) -> str:
        """Start a container of the image and return what it printed."""
        name = f"test-{uuid.uuid4()}"
        options = ("--rm", "--cgroup", f"/{name}", "--runc-binary", self.programs / "runc")
        finished = run((*self.ctr, "run", *options, image, name, *command))
        return finished.output + finished.complaints


def start(release: Release, folder: Path, root: Path) -> Iterator[Containerd]:
    programs = folder / "bin"
    for name in ("containerd", "containerd-shim-runc-v2", "ctr", "runc"):
        release.install(name, programs)
    config = folder / "config.toml"
    config.write_text(
        f'version = 3\nroot = "{root}"\nstate = "{folder}/state"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images"]\n'
        f'[grpc]\naddress = "{folder}/socket"\n[ttrpc]\naddress = "{folder}/ttrpc"\n'
    )
    # Namespaces of its own: mounts, shims and containers end with it, whatever a test does.
    isolated = (
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation",
        "private",
    )
    path = f"PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    with daemon((*isolated, "env", path, programs / "containerd", "--config", config), log=folder / "log"):
        yield Containerd(programs, folder / "socket")


@pytest.fixture(scope="module")
def empty(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    folder = tmp_path_factory.mktemp("empty")
    yield from start(release, folder, folder / "root")


@pytest.fixture(scope="module")
def seeded(release: Release, beside_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    started = time.monotonic()
    result = release.seed_images(beside_cache / "containerd")
    print(
        f"\nseeded a machine's images in {time.monotonic() - started:.3f} s: {result.linked} files linked, "
        f"{result.copied} copied ({result.bytes_copied / 1e3:.0f} kB)"
    )
    yield from start(release, tmp_path_factory.mktemp("seeded"), beside_cache / "containerd")


def test_an_archive_is_imported_and_run(release: Release, cache: Cache, empty: Containerd, tmp_path: Path) -> None:
    image = release.images["etcd"]
    oci.write_archive(cache, [image], tmp_path / "etcd.tar")
    run((*empty.ctr, "images", "import", "--platform", "linux/amd64", tmp_path / "etcd.tar"))
    assert empty.images() == {image.tagged}
    assert f"etcd Version: {load_payload().go_units['etcd'].version}" in empty.run(
        image.tagged, "/usr/bin/etcd", "--version"
    )


def test_a_seeded_store_has_every_image_by_tag_and_by_digest(release: Release, seeded: Containerd) -> None:
    assert seeded.images() == {name for image in release.images.values() for name in (image.tagged, image.pinned)}


@pytest.mark.parametrize(
    ("image", "command", "expected"),
    [
        ("kube-apiserver", ("/usr/bin/kube-apiserver", "--version"), "Kubernetes v1.36.4"),
        ("kube-controller-manager", ("/usr/bin/kube-controller-manager", "--version"), "Kubernetes v1.36.4"),
        ("kube-scheduler", ("/usr/bin/kube-scheduler", "--version"), "Kubernetes v1.36.4"),
        ("kube-proxy", ("/usr/bin/kube-proxy", "--version"), "Kubernetes v1.36.4"),
        ("kube-proxy", ("/usr/sbin/nft", "--version"), "nftables v1."),
        ("kubectl", ("/usr/bin/kubectl", "version", "--client"), "Client Version: v1.36.4"),
        ("etcd", ("/usr/bin/etcdctl", "version"), "etcdctl version: 3.6.16"),
        ("flannel", ("/usr/bin/flanneld", "--version"), "v0.26.7"),
        ("coredns", ("/usr/bin/coredns", "-version"), "CoreDNS-1.14.2"),
        ("coredns", ("/usr/bin/coredns", "-plugins"), "kubernetes"),
        ("registry", ("/usr/bin/registry", "--version"), "v3.1.2"),
        ("pause", ("/usr/bin/pause", "-v"), "pause.c 1.36.4"),
        ("falsework", ("/usr/bin/python3", "-m", "falsework", "--version"), "falsework 0."),
        ("falsework", ("/usr/bin/python3", "-c", "import ssl, yaml, cryptography.x509, bcrypt; print('ok')"), "ok"),
    ],
)
def test_every_image_runs_from_a_seeded_store(
    release: Release, seeded: Containerd, image: str, command: tuple[str, ...], expected: str
) -> None:
    assert expected in seeded.run(release.images[image].pinned, *command)


def test_python_in_the_image_compiles_nothing_when_it_starts(release: Release, seeded: Containerd) -> None:
    """Every module that is imported comes from a compiled file: starting an operator costs no compiler time."""
    script = (
        "import sys, os, importlib.util, json, argparse, ssl, falsework.cli, falsework.cli.release;"
        "files = [m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)];"
        "print([f for f in files if f.endswith('.py') and not os.path.exists(importlib.util.cache_from_source(f))])"
    )
    assert seeded.run(release.images["falsework"].pinned, "/usr/bin/python3", "-c", script).splitlines()[0] == "[]"


def test_no_machine_unpacks_an_image_again(release: Release, beside_cache: Path) -> None:
    """Two machines' stores share all image files with the host's: only the databases take space."""
    first, second = (release.seed_images(beside_cache / name) for name in ("one", "two"))
    assert first == second
    assert first.bytes_copied < 5_000_000
    files = [path for path in (beside_cache / "one").rglob("*") if path.is_file() and not path.is_symlink()]
    assert min(path.stat().st_nlink for path in files if path.suffix != ".db") >= 3


def test_a_damaged_store_is_noticed(release: Release, tmp_path: Path) -> None:
    store = tmp_path / "store"
    subprocess.run(("cp", "--archive", str(release.image_store), str(store)), check=True)
    assert imagestore.differences(store) == []
    victim = next(store.rglob("usr/bin/pause"))
    victim.write_bytes(b"altered")
    assert imagestore.differences(store) == [str(victim.relative_to(store))]


def test_the_release_image_lists_the_others_as_openshift_does(release: Release, cache: Cache) -> None:
    layer = oci.blobs_of(cache, release.images["release"])[2]
    with tarfile.open(cache.path_of(layer)) as archive:
        files = {
            name: archive.extractfile(f"release-manifests/{name}") for name in ("image-references", "release-metadata")
        }
        references, metadata = (json.load(file) for file in files.values() if file)
    assert (references["kind"], references["apiVersion"]) == ("ImageStream", "image.openshift.io/v1")
    listed = {tag["name"]: tag["from"]["name"] for tag in references["spec"]["tags"]}
    assert listed == {name: image.pinned for name, image in release.images.items() if name != "release"}
    assert (metadata["kind"], metadata["version"]) == ("cincinnati-metadata-v0", release.version)
