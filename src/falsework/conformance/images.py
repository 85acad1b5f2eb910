"""The images the tests run in pods, under the names and tags the tests ask for.

Upstream's are made by Docker from Alpine and others; these have the same programs, from the same sources where these
are Kubernetes' own, over one Debian root.
"""

from __future__ import annotations

import dataclasses
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from falsework.conformance.parts import AGNHOST, ROOT
from falsework.process import run
from falsework.release import oci
from falsework.release.cache import Cache
from falsework.release.images import assembled, common_entries
from falsework.release.oci import Image
from falsework.release.payload import repository_of
from falsework.release.recipes import Part
from falsework.release.tarball import Entry, file_entry, folder_entry, link_entry

FOLDER = "conformance"
"""Of the registry: test images are beside the release's, and are not mistaken for them."""
_BUSYBOX, _SHELL = "busybox", "bash-static"

# A test asks for a user and a group that only the image knows.
_PASSWD = (
    b"root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n"
    b"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
)
_GROUP = (
    b"root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
    b"nogroup:x:65534:\n"
)
# A test that mounts an image as a volume knows it by the system that upstream's is made of.
_OS_RELEASE = b'PRETTY_NAME="Debian, in place of the Alpine Linux of upstream\'s image"\nID=debian\n'
_NGINX = b"""\
user nobody nogroup;
pid /tmp/nginx.pid;
error_log /dev/stderr;
events {}
http {
  access_log /dev/stdout;
  server { listen 80; root /usr/share/nginx/html; index index.html; }
}
"""


@dataclass(frozen=True)
class SuiteImage:
    name: str
    tags: tuple[str, ...]
    base: str | None = None
    """The Debian root below it, or another of these images."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Place → part of the build."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    user: str = ""
    setuid: bool = False
    """Whether its program runs as its owner, whoever starts it."""


BUSYBOX = SuiteImage("busybox", ("1.37.0-1",), arguments=("sh",))

IMAGES = (
    BUSYBOX,
    SuiteImage("nonroot", ("1.5",), BUSYBOX.name, arguments=("sh",), user="1234"),
    SuiteImage(
        "nonewprivs",
        ("1.4",),
        BUSYBOX.name,
        parts={"usr/bin/nnp": "nonewprivs"},
        arguments=("/usr/bin/nnp",),
        setuid=True,
    ),
    SuiteImage("glibc-dns-testing", ("2.0.0",), ROOT, arguments=("/bin/bash",)),
    SuiteImage(
        "nginx",
        ("1.15-4", "1.27-0"),
        ROOT,
        files={"etc/nginx/nginx.conf": _NGINX},
        arguments=("/usr/sbin/nginx", "-g", "daemon off;"),
    ),
    SuiteImage(
        "agnhost",
        ("2.55", AGNHOST),
        ROOT,
        parts={"agnhost": "agnhost", "localhost.crt": "localhost.crt", "localhost.key": "localhost.key"},
        files={"uploads/.keep": b""},
        # Debian makes the last two when it installs the packages; here they are only unpacked.
        links={"agnhost-2": "agnhost", "usr/bin/awk": "mawk", "bin/nc": "nc.openbsd"},
        entrypoint=("/agnhost",),
        arguments=("pause",),
    ),
    *(
        SuiteImage(
            name,
            ("1.8",),
            "agnhost",
            parts={f"{name}.jpg": f"{name}.jpg", "data.json": f"{name}.json"},
            files={"etc/os-release": _OS_RELEASE},
            entrypoint=("/agnhost",),
            arguments=("test-webserver",),
        )
        for name in ("kitten", "nautilus")
    ),
    SuiteImage(
        "sample-apiserver",
        ("1.29.2",),
        parts={"sample-apiserver": "sample-apiserver"},
        entrypoint=("/sample-apiserver",),
    ),
    # A test starts it by the path it has in upstream's image.
    SuiteImage("etcd", ("3.6.8-0",), parts={"usr/local/bin/etcd": "etcd"}, entrypoint=("/usr/local/bin/etcd",)),
    SuiteImage("pause", ("3.10.2",), parts={"pause": "pause"}, entrypoint=("/pause",)),
)


def registry_list() -> dict[str, str]:
    """For the tests: which registry stands for each of upstream's."""
    folder = repository_of(FOLDER)
    names = ("promoterE2eRegistry", "gcRegistry", "gcEtcdRegistry", "dockerLibraryRegistry", "buildImageRegistry")
    return dict.fromkeys((*names, "sigStorageRegistry", "cloudProviderGcpRegistry"), folder)


def suite_images(cache: Cache, parts: Mapping[str, Part], epoch: int) -> list[Image]:
    """All of them, with each of their tags."""
    made: dict[str, Image] = {}
    for spec in IMAGES:
        made[spec.name] = _image(cache, spec, parts, made, epoch)
    return [dataclasses.replace(made[spec.name], version=tag) for spec in IMAGES for tag in spec.tags]


def _image(cache: Cache, spec: SuiteImage, parts: Mapping[str, Part], made: Mapping[str, Image], epoch: int) -> Image:
    name, tag = f"{FOLDER}/{spec.name}", spec.tags[-1]
    below = _layers_below(cache, spec, parts, made)
    used = [parts[part].digest for part in spec.parts.values()]

    def make() -> Image:
        entries = [*_users(epoch), *_entries(spec, parts, epoch)]
        if spec is BUSYBOX:
            entries += _busybox(cache, parts[ROOT].path, epoch)
        layers = [*below, oci.add_layer(cache, entries)]
        return oci.add_image(
            cache, name, tag, layers, entrypoint=spec.entrypoint, arguments=spec.arguments, user=spec.user
        )

    described = {**dataclasses.asdict(spec), "files": {place: text.decode() for place, text in spec.files.items()}}
    return assembled(cache, name, tag, [described, below, used, parts[ROOT].digest, epoch], __file__, make)


def _layers_below(cache: Cache, spec: SuiteImage, parts: Mapping[str, Part], made: Mapping[str, Image]) -> list[str]:
    if spec.base is None:
        return []
    if spec.base == ROOT:
        return [parts[ROOT].digest]
    _manifest, _config, *layers = oci.blobs_of(cache, made[spec.base])
    return layers


def _users(epoch: int) -> list[Entry]:
    return [
        *common_entries(epoch),
        file_entry("etc/passwd", _PASSWD, epoch),
        file_entry("etc/group", _GROUP, epoch),
        folder_entry("home", epoch),
    ]


def _entries(spec: SuiteImage, parts: Mapping[str, Part], epoch: int) -> Iterator[Entry]:
    mode = 0o4755 if spec.setuid else 0o755
    places = [*spec.parts, *spec.files, *spec.links]
    for folder in sorted({str(above) for place in places for above in Path(place).parents[:-1]}):
        yield folder_entry(folder, epoch)
    for place, part in spec.parts.items():
        yield file_entry(place, parts[part].path, epoch, mode)
    for place, content in spec.files.items():
        yield file_entry(place, content, epoch)
    for place, target in spec.links.items():
        yield link_entry(place, target, epoch)


def _busybox(cache: Cache, root: Path, epoch: int) -> list[Entry]:
    """Debian's, with a link for every program it can be; Debian itself makes none. Its shell drops variables that have
    a dash in their names, which tests look for, so that `sh` is bash."""
    with cache.work("busybox") as folder, tarfile.open(root) as archive:
        contents = {name: _content(archive, f"bin/{name}") for name in (_BUSYBOX, _SHELL)}
        program = folder / _BUSYBOX
        program.write_bytes(contents[_BUSYBOX])
        program.chmod(0o755)
        names = set(run((program, "--list")).output.split()) - {_BUSYBOX, "sh"}
    return [
        *(link_entry(place, "usr/bin", epoch) for place in ("bin", "sbin")),
        link_entry("usr/sbin", "bin", epoch),
        *(file_entry(f"usr/bin/{name}", content, epoch, 0o755) for name, content in contents.items()),
        *(link_entry(f"usr/bin/{name}", _BUSYBOX, epoch) for name in sorted(names)),
        link_entry("usr/bin/sh", _SHELL, epoch),
    ]


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"{name} is a file of the root"
    return file.read()
