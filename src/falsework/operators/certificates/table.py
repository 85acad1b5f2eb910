"""What is to be renewed, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Signer:
    """It signs itself. Its successor signs nothing until every API server runs with a bundle that has it."""

    current: Place
    """The Secret with tls.crt and tls.key."""
    successor: Place
    """The Secret in which the next one waits."""
    bundles: tuple[Place, ...]
    """ConfigMaps that say whom to trust: both are in them."""
    trusted_as: tuple[str, ...]
    """ConfigMaps among kube-apiserver's inputs that must have it, on every master, before it signs."""


@dataclass(frozen=True)
class Leaf:
    secret: Place
    signer: Place


@dataclass(frozen=True)
class Followed:
    """A bundle that has everything another one has."""

    source: Place
    bundles: tuple[Place, ...]


@dataclass(frozen=True)
class Table:
    signers: tuple[Signer, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    lasting: tuple[Place, ...] = ()
    """Signers whom machines and people trust by files of their own: nobody can replace them by himself, so they are
    only watched."""
    followed: tuple[Followed, ...] = ()
