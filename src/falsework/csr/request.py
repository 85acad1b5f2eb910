"""A CertificateSigningRequest as the API has it: who asks whom for what, and what was decided about it."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from functools import cached_property

from falsework.csr.pkcs10 import Asked, NotUnderstoodError, read_request
from falsework.kube.client import Object

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"


@dataclass(frozen=True)
class Request:
    name: str
    uid: str
    created: str
    signer: str
    requester: str
    groups: tuple[str, ...]
    usages: tuple[str, ...]
    conditions: tuple[tuple[str, str, str], ...]
    """Type, reason, message."""
    is_issued: bool
    encoded: str = field(repr=False)
    """The PKCS#10 request, PEM in base64."""

    @classmethod
    def of(cls, body: Object) -> Request:
        """What is missing is empty: the rules refuse that too."""
        metadata, spec, status = (body.get(part) or {} for part in ("metadata", "spec", "status"))
        return cls(
            name=str(metadata.get("name", "")),
            uid=str(metadata.get("uid", "")),
            created=str(metadata.get("creationTimestamp") or ""),
            signer=str(spec.get("signerName", "")),
            requester=str(spec.get("username", "")),
            groups=tuple(map(str, spec.get("groups") or ())),
            usages=tuple(map(str, spec.get("usages") or ())),
            conditions=tuple(
                (str(entry.get("type", "")), str(entry.get("reason", "")), str(entry.get("message", "")))
                for entry in status.get("conditions") or ()
            ),
            is_issued=bool(status.get("certificate")),
            encoded=str(spec.get("request") or ""),
        )

    def condition(self, kind: str) -> tuple[str, str] | None:
        """Reason and message of a condition, if it has it."""
        return next(((reason, message) for found, reason, message in self.conditions if found == kind), None)

    @property
    def is_decided(self) -> bool:
        """Nobody may change their mind about it: the API does not let them."""
        return any(kind in ("Approved", "Denied") for kind, _, _ in self.conditions)

    @property
    def state(self) -> str:
        """As `kubectl get csr` shows it."""
        kinds = [kind for kind in ("Approved", "Denied", "Failed") if self.condition(kind)]
        return ",".join([*(kinds or ["Pending"]), *(["Issued"] if self.is_issued else [])])

    @cached_property
    def asked(self) -> Asked | NotUnderstoodError:
        """Read once, and only when the rules get that far."""
        try:
            return read_request(base64.b64decode(self.encoded, validate=True))
        except binascii.Error:
            return NotUnderstoodError("it is not base64")
        except NotUnderstoodError as error:
            return error
