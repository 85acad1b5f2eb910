"""What the operator shows to etcd, and whom it trusts: out of the API, and renewed with it."""

from __future__ import annotations

import base64
import binascii
import ssl

from falsework.errors import FalseworkError
from falsework.kube import access
from falsework.kube.informer import version_of
from falsework.kube.resources import CONFIG_MAPS, SECRETS
from falsework.operators.runtime.controller import Wake, always
from falsework.operators.runtime.program import Program

_CLIENT, _BUNDLE = "etcd-client", "etcd-ca-bundle"


class Credentials:
    def __init__(self, program: Program) -> None:
        self._namespace = program.namespace
        self._client = program.follow(SECRETS, program.namespace, fields=f"metadata.name={_CLIENT}")
        self._bundle = program.follow(CONFIG_MAPS, program.namespace, fields=f"metadata.name={_BUNDLE}")
        self._made: tuple[tuple[str, str], ssl.SSLContext] | None = None

    @property
    def wakes(self) -> list[Wake]:
        return [(self._client, always), (self._bundle, always)]

    def context(self) -> ssl.SSLContext:
        """The same as long as the objects are the same."""
        client, bundle = (
            informer.get(name, self._namespace) for informer, name in ((self._client, _CLIENT), (self._bundle, _BUNDLE))
        )
        if client is None or bundle is None:
            missing = (
                f"Secret {self._namespace}/{_CLIENT}" if client is None else f"ConfigMap {self._namespace}/{_BUNDLE}"
            )
            raise FalseworkError(f"{missing} is missing", cause="the bootstrap has not created it yet")
        versions = (version_of(client), version_of(bundle))
        made = self._made
        if made is None or made[0] != versions:
            try:
                pair = [base64.b64decode(client["data"][key], validate=True) for key in ("tls.crt", "tls.key")]
                context = access.mutual(bundle["data"]["ca-bundle.crt"].encode(), *pair)
            except (KeyError, TypeError, ValueError, binascii.Error, ssl.SSLError) as error:
                # The error's own text may hold what it stumbled over, which may be a key.
                raise FalseworkError(
                    f"what the operator shows to etcd cannot be used ({self._namespace}/{_CLIENT}, {_BUNDLE})",
                    cause=type(error).__name__,
                ) from None
            made = self._made = (versions, context)
        return made[1]
