"""What assets have to know of the release: names that end up in manifests and configs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    version: str
    release_image: str
    sandbox_image: str
    """What containerd holds a pod's namespaces with."""

    @property
    def channel(self) -> str:
        major, minor, *_ = self.version.split(".")
        return f"stable-{major}.{minor}"


DEFAULT_PAYLOAD = Payload(
    version="1.36.4",
    release_image="localhost/falsework/release:1.36.4",
    sandbox_image="localhost/falsework/pause:1.36.4",
)
