"""A bootstrap machine's files below a folder, and a disk that loses power."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from falsework.assets.bootstrap_facts import BootstrapFacts
from falsework.assets.ignition_configs import bootstrap_facts
from falsework.assets.payload import DEFAULT_PAYLOAD
from falsework.bootstrap.disk import Disk
from falsework.site.load import default_site


@cache
def sample_facts() -> BootstrapFacts:
    return bootstrap_facts(default_site(), DEFAULT_PAYLOAD)


def small(folder: Path) -> Path:
    """Only what bootkube reads."""
    for path, content in {
        "opt/openshift/tls/machine-config-server.crt": "certificate",
        "opt/openshift/tls/machine-config-server.key": "key",
        "opt/openshift/auth/kubeconfig-loopback": "kubeconfig",
        "opt/openshift/manifests/cluster-config.yaml": "kind: ConfigMap",
        "opt/openshift/openshift/99_one.yaml": "kind: Secret",
        "opt/openshift/openshift/99_two.yaml": "kind: Secret",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return folder


class Killed(BaseException):
    """As kill -9 is: nothing in the code catches it."""


class FailingDisk(Disk):
    """The run ends before the step with this number; with `half`, a draft of the file is left behind."""

    def __init__(self, root: Path, steps: int, *, half: bool = False) -> None:
        super().__init__(root)
        self.steps = steps
        self._half = half

    def write(self, path: Path, content: bytes, mode: int = 0o644) -> None:
        if not self.is_written(path, content, mode):
            self._step(path, content)
            super().write(path, content, mode)

    def move(self, source: Path, target: Path) -> None:
        self._step(target)
        super().move(source, target)

    def remove(self, path: Path) -> None:
        self._step(path)
        super().remove(path)

    def _step(self, path: Path, content: bytes | None = None) -> None:
        if self.steps == 0:
            # A rename has no half.
            if self._half and content is not None:
                draft = self.place(path).with_name(f".{path.name}.half_way")
                draft.parent.mkdir(parents=True, exist_ok=True)
                draft.write_bytes(content[: len(content) // 2])
            raise Killed
        self.steps -= 1
