"""What the tests and their images are made of. It is no part of the release: built when the tests are asked for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from falsework.release.payload import DebianRoot, GoUnit, Payload, Pin, load_payload
from falsework.release.recipes import BUILD_ROOT

LOCK_FILE = Path(__file__).parent / "parts.lock.json"
"""With which results: the sha256 of every part."""

UNIT = "conformance"
ROOT = "debian-test-images"
TESTS, RUNNER = "e2e.test", "ginkgo"
AGNHOST = "2.63.0"
_ETCD, _PAUSE = "etcd", "pause"
"""Of the release, and images of the tests too."""
_IMAGES = "k8s.io/kubernetes/test/images"


def conformance_payload(release: Payload | None = None) -> Payload:
    """The tests are those of the release's Kubernetes, built with the release's compiler."""
    release = release or load_payload()
    kubernetes = release.go_units["kubernetes"]
    lock = json.loads(LOCK_FILE.read_text())
    return dataclasses.replace(
        release,
        go_units={UNIT: _unit(kubernetes), _ETCD: release.go_units[_ETCD]},
        c_programs={_PAUSE: dataclasses.replace(release.c_programs[_PAUSE], unit=UNIT)},
        debian_roots={BUILD_ROOT: release.debian_roots[BUILD_ROOT], ROOT: _root(release)},
        images={},
        os_programs={},
        pins=release.pins | {name: Pin(**pin) for name, pin in lock["pins"].items()},
        packages=release.packages | lock["packages"],
    )


def without_the_releases(payload: Payload) -> Payload:
    """Only what the release does not have."""
    return dataclasses.replace(payload, go_units={UNIT: payload.go_units[UNIT]}, c_programs={})


def _unit(kubernetes: GoUnit) -> GoUnit:
    return GoUnit(
        name=UNIT,
        version=kubernetes.version,
        modules=kubernetes.modules,
        binaries={
            RUNNER: "github.com/onsi/ginkgo/v2/ginkgo",
            "agnhost": f"{_IMAGES}/agnhost",
            "nonewprivs": f"{_IMAGES}/nonewprivs",
            "sample-apiserver": "k8s.io/sample-apiserver",
        },
        tests={TESTS: "k8s.io/kubernetes/test/e2e"},
        files={
            "localhost.crt": "test/images/agnhost/porter/localhost.crt",
            "localhost.key": "test/images/agnhost/porter/localhost.key",
            "kitten.json": "test/images/kitten/html/data.json",
            "kitten.jpg": "test/images/kitten/html/kitten.jpg",
            "nautilus.json": "test/images/nautilus/html/data.json",
            "nautilus.jpg": "test/images/nautilus/html/nautilus.jpg",
        },
        stamps={**kubernetes.stamps, "main.Version": AGNHOST},
    )


def _root(release: Payload) -> DebianRoot:
    """One for all images, so that a node fetches and unpacks it once."""
    return DebianRoot(
        name=ROOT,
        suite=release.debian_roots[BUILD_ROOT].suite,
        variant="extract",
        include=(
            *(
                "base-files",
                "bash",
                "bash-static",
                "bind9-dnsutils",
                "bind9-host",
                "busybox-static",
                "coreutils",
                "curl",
            ),
            *("dash", "grep", "hostname", "iproute2", "libc-bin", "mawk", "netbase", "netcat-openbsd"),
            *("nginx-light", "procps", "sed", "util-linux"),
        ),
        without=("etc/nginx/", "usr/bin/perl", "usr/lib/x86_64-linux-gnu/perl", "usr/share/perl"),
    )
