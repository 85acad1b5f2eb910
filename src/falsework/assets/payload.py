"""What assets have to know of the release: names that end up in manifests and configs."""

from __future__ import annotations

from dataclasses import dataclass

from falsework import __version__
from falsework.release.payload import load_payload, repository_of


@dataclass(frozen=True)
class Payload:
    version: str
    release_image: str
    sandbox_image: str
    """What containerd holds a pod's namespaces with."""
    images: dict[str, str]
    """All images of the release by name, Falsework's own too."""

    @property
    def channel(self) -> str:
        major, minor, *_ = self.version.split(".")
        return f"stable-{major}.{minor}"


def _pinned() -> Payload:
    """The names of this Falsework's own release."""
    release = load_payload()
    images = {name: f"{repository_of(name)}:{image.version}" for name, image in release.images.items()}
    release_image = f"{repository_of('release')}:{release.version}"
    return Payload(
        version=release.version,
        release_image=release_image,
        sandbox_image=images["pause"],
        images={**images, "falsework": f"{repository_of('falsework')}:{__version__}", "release": release_image},
    )


DEFAULT_PAYLOAD = _pinned()
