"""One look at certificates and signers, and the next step for each whose time has come.

What is changed are inputs of revisions, so a renewed certificate reaches one master after the other, and is taken back
where it does not work. Each step is told by the objects alone: ended at any moment, the next look goes on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from falsework.assets.pki import Pair
from falsework.errors import FalseworkError
from falsework.kube.client import ApiError, Client, Object
from falsework.kube.resources import CONFIG_MAPS, KUBE_API_SERVERS, SECRETS, Resource
from falsework.manifests.objects import config_map, secret
from falsework.operators.certificates import renewal
from falsework.operators.certificates.renewal import Files
from falsework.operators.certificates.table import Followed, Leaf, Place, Signer, Table
from falsework.operators.runtime.events import Events

_BUNDLE = "ca-bundle.crt"
_API_SERVER = "openshift-kube-apiserver"
_NEVER = float("inf")


class Rotation:
    def __init__(self, client: Client, events: Events, table: Table, now: datetime | None = None) -> None:
        self._client = client
        self._events = events
        self._table = table
        self._now = now or datetime.now(UTC)

    def look(self) -> float:
        """Seconds until something has to be done next. What fails keeps nothing else from being done."""
        steps: list[Callable[[], float]] = [
            *(partial(self._signer, signer) for signer in self._table.signers),
            *(partial(self._follow, followed) for followed in self._table.followed),
            *(partial(self._leaf, leaf) for leaf in self._table.leaves),
            *(partial(self._lasting, place) for place in self._table.lasting),
        ]
        waits, errors = [_NEVER], []
        for step in steps:
            try:
                waits.append(step())
            except FalseworkError as error:
                errors.append(error)
        if errors:
            raise FalseworkError("; ".join(error.what for error in errors), cause=errors[0].cause, fix=errors[0].fix)
        return min(waits)

    def _signer(self, signer: Signer) -> float:
        current = self._required(signer.current)
        wait = renewal.due(_pair(signer.current, current), self._now)
        successor = self._read(signer.successor)
        if successor is None and not wait:
            successor = renewal.successor_of(_pair(signer.current, current), self._now)
            self._write(signer.successor, successor, "SignerCreated")
        both = [files["tls.crt"] for files in (current, successor) if files is not None]
        for bundle in signer.bundles:
            self._extend(bundle, both)
        if successor is None:
            return wait.total_seconds()
        if successor == current:
            # It has taken over: nobody waits any more.
            self._client.delete(SECRETS, signer.successor.name, signer.successor.namespace)
        elif self._is_trusted(signer.trusted_as, successor["tls.crt"]):
            self._write(signer.current, successor, "SignerReplaced")
        return 0.0

    def _leaf(self, leaf: Leaf) -> float:
        files = self._required(leaf.secret)
        pair, signer = _pair(leaf.secret, files), _pair(leaf.signer, self._required(leaf.signer))
        if reason := renewal.renewal_reason(pair, signer, self._now):
            self._write(leaf.secret, renewal.renewed_leaf(files, signer, self._now), "CertificateRenewed", reason)
        return renewal.due(pair, self._now).total_seconds()

    def _follow(self, followed: Followed) -> float:
        source = self._get(CONFIG_MAPS, followed.source)
        if content := ((source or {}).get("data") or {}).get(_BUNDLE):
            for bundle in followed.bundles:
                self._extend(bundle, [content.encode()])
        return _NEVER

    def _lasting(self, place: Place) -> float:
        pair = _pair(place, self._required(place))
        if wait := renewal.due(pair, self._now):
            return wait.total_seconds()
        raise FalseworkError(
            f"signer {place} ends at {pair.life.ends:%Y-%m-%d %H:%M} UTC",
            cause="machines and people trust it by files of their own, so it is not replaced by itself",
            fix="make a new one, give it to everybody who trusts the old one, then put it into this Secret",
        )

    def _extend(self, bundle: Place, certificates: Iterable[bytes]) -> None:
        found = self._get(CONFIG_MAPS, bundle)
        old = ((found or {}).get("data") or {}).get(_BUNDLE) or ""
        new = renewal.merged(old, certificates, self._now)
        if new == old:
            return
        if found is None:
            self._client.create(CONFIG_MAPS, config_map(bundle.name, bundle.namespace, {_BUNDLE: new}))
        else:
            self._client.patch(CONFIG_MAPS, bundle.name, {"data": {_BUNDLE: new}}, bundle.namespace)
        self._events.normal("CABundleUpdated", f"Updated ConfigMap/{bundle.name} -n {bundle.namespace}")

    def _is_trusted(self, bundles: tuple[str, ...], certificate: bytes) -> bool:
        """Whether every API server runs with it: what counts is what runs, not what is to run."""
        status = self._client.get(KUBE_API_SERVERS, "cluster").get("status") or {}
        revisions = {int(node.get("currentRevision") or 0) for node in status.get("nodeStatuses") or ()}
        if not revisions or 0 in revisions:
            return False
        copies = (Place(_API_SERVER, f"{bundle}-{revision}") for bundle in bundles for revision in revisions)
        found = (self._get(CONFIG_MAPS, copy) for copy in copies)
        return all(entry is not None and renewal.holds(entry["data"][_BUNDLE], certificate) for entry in found)

    def _required(self, place: Place) -> Files:
        files = self._read(place)
        if files is None:
            raise FalseworkError(f"Secret {place} is not there", cause="certificates cannot be renewed without it")
        return files

    def _read(self, place: Place) -> Files | None:
        found = self._get(SECRETS, place)
        if found is None:
            return None
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def _get(self, resource: Resource, place: Place) -> Object | None:
        try:
            return self._client.get(resource, place.name, place.namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def _write(self, place: Place, files: Files, what: str, why: str = "") -> None:
        body = secret(place.name, place.namespace, files, "kubernetes.io/tls")
        if self._get(SECRETS, place) is None:
            self._client.create(SECRETS, body)
        else:
            self._client.patch(SECRETS, place.name, {"data": body["data"]}, place.namespace)
        self._events.normal(what, f"Secret/{place.name} -n {place.namespace}" + (f": {why}" if why else ""))


def _pair(place: Place, files: Files) -> Pair:
    try:
        return renewal.pair_in(files)
    except (ValueError, KeyError):
        raise FalseworkError(f"Secret {place} holds no certificate with its key", fix="put one into it") from None
