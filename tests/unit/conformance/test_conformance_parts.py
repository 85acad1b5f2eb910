"""What the tests are built from fits the release, and is pinned."""

import re
from itertools import chain

from falsework.conformance.images import IMAGES
from falsework.conformance.parts import LOCK_FILE, ROOT, UNIT, conformance_payload, without_the_releases
from falsework.release.payload import MODULES, load_payload
from falsework.release.recipes import BUILD_ROOT

PAYLOAD = conformance_payload()


def test_every_part_has_a_pin() -> None:
    own = without_the_releases(PAYLOAD)
    assert set(own.go_units[UNIT].outputs) | {ROOT} == set(PAYLOAD.pins) - set(load_payload().pins)
    assert set(PAYLOAD.debian_roots[ROOT].include) <= set(PAYLOAD.packages[ROOT])
    assert "://" not in LOCK_FILE.read_text()


def test_tests_are_those_of_the_releases_kubernetes() -> None:
    kubernetes = load_payload().go_units["kubernetes"]
    assert PAYLOAD.go_units[UNIT].version == kubernetes.version
    modules = (MODULES / UNIT / "go.mod").read_text()
    assert re.search(rf"^\s+k8s\.io/kubernetes v{re.escape(kubernetes.version)}", modules, re.MULTILINE)


def test_nothing_of_it_is_part_of_the_release() -> None:
    release = load_payload()
    assert UNIT not in release.go_units
    assert ROOT not in release.debian_roots


def test_images_are_made_of_parts_that_are_built_and_of_images_before_them() -> None:
    built = set(chain(*(unit.outputs for unit in PAYLOAD.go_units.values()), PAYLOAD.c_programs))
    before: set[str] = set()
    for image in IMAGES:
        assert set(image.parts.values()) <= built
        assert image.base in {None, ROOT, *before}
        assert image.tags
        before.add(image.name)
    assert len(before) == len(IMAGES)


def test_the_compiler_is_the_releases() -> None:
    assert PAYLOAD.toolchain == load_payload().toolchain
    assert PAYLOAD.pins[BUILD_ROOT] == load_payload().pins[BUILD_ROOT]
