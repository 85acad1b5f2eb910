"""What assets have to know of the release: names that end up in manifests and configs."""

from __future__ import annotations

from dataclasses import dataclass

from falsework.release.payload import load_payload, repository_of


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


def _pinned() -> Payload:
    """The names of this Falsework's own release."""
    release = load_payload()
    pause = release.images["pause"]
    return Payload(
        version=release.version,
        release_image=f"{repository_of('release')}:{release.version}",
        sandbox_image=f"{repository_of(pause.name)}:{pause.version}",
    )


DEFAULT_PAYLOAD = _pinned()
