"""machine-config-server on the masters: the same server as on the bootstrap machine, for all pools, out of the API."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Sequence
from pathlib import Path

from falsework.assets.rendered_config import RENDERED
from falsework.assets.served_config import served_config
from falsework.config_server import rules
from falsework.config_server.records import Ledger, complain
from falsework.config_server.rules import KnownSite
from falsework.config_server.server import PORT, MachineConfigServer, serve
from falsework.config_server.source import BadConfigError, NoSuchConfigError, PoolConfig
from falsework.errors import FalseworkError
from falsework.kube.client import Client, Object
from falsework.kube.informer import Informer, version_of
from falsework.kube.resources import CONFIG_MAPS, MACHINE_CONFIG_POOLS, MACHINE_CONFIGS, SECRETS
from falsework.kube.trouble import Trouble
from falsework.operators.machine_config import names
from falsework.operators.machine_config.served import ServedInCluster
from falsework.web.door import Certificate

POOLS = ("master", "worker")
CERTIFICATES = "/etc/ssl/mcs"


def main(words: Sequence[str]) -> int:
    options = _options(words)
    try:
        certificate = Certificate(options.certificates / "tls.crt", options.certificates / "tls.key")
        client = Client.from_kubeconfig(options.kubeconfig) if options.kubeconfig else Client.from_pod()
    except (OSError, ValueError, FalseworkError) as error:
        # The kubelet starts us again, and by then it may be there.
        complain(f"cannot start: {error}")
        return 1
    complain(f"starts, of release {options.release_version or 'unknown'}")
    trouble = Trouble(complain)
    site, source = FollowedSite(client, trouble), FollowedPools(client, trouble)
    # Whoever is sent here by a load balancer gets an answer, not a "not yet".
    site.wait_known()
    source.wait_known()
    server = MachineConfigServer(source, site, POOLS, Ledger(None), ServedInCluster(client))
    return serve(server, site, certificate, options.address, options.port)


class FollowedSite:
    """The machines and balancers of the site, as the cluster knows them now."""

    def __init__(self, client: Client, trouble: Trouble) -> None:
        self._informer = Informer(
            client,
            CONFIG_MAPS,
            namespace=names.INVENTORY_NAMESPACE,
            fields=f"metadata.name={names.INVENTORY}",
            on_trouble=trouble.tell,
        ).start()
        self._seen = ""
        self._value = rules.NOBODY
        self.problem = ""

    def wait_known(self) -> None:
        self._informer.wait_synced()

    def value(self) -> KnownSite:
        body = self._informer.get(names.INVENTORY, names.INVENTORY_NAMESPACE)
        version = version_of(body) if body else "none"
        if version != self._seen:
            self._seen = version
            self._value, self.problem = _site_in(body)
        return self._value


def _site_in(body: Object | None) -> tuple[KnownSite, str]:
    where = f"ConfigMap {names.INVENTORY_NAMESPACE}/{names.INVENTORY}"
    if body is None:
        return rules.NOBODY, f"there is no {where}"
    try:
        return rules.parse_site(str((body.get("data") or {})[names.SITE_KEY]).encode()), ""
    except (KeyError, ValueError) as error:
        return rules.NOBODY, f"{where} cannot be used: {error}"


class FollowedPools:
    """Pools and rendered configs, and what machines join with. The Secret is followed, not mounted: a kubelet brings
    a change of it into its pods a minute late, and a new machine is there before."""

    def __init__(self, client: Client, trouble: Trouble) -> None:
        self._pools = Informer(client, MACHINE_CONFIG_POOLS, on_trouble=trouble.tell).start()
        self._configs = Informer(client, MACHINE_CONFIGS, keep=_rendered_only, on_trouble=trouble.tell).start()
        self._join = Informer(
            client,
            SECRETS,
            namespace=names.NAMESPACE,
            fields=f"metadata.name={names.JOIN_SECRET}",
            on_trouble=trouble.tell,
        ).start()
        self._served: dict[str, PoolConfig] = {}

    def wait_known(self) -> None:
        informers: tuple[Informer, ...] = (self._pools, self._configs, self._join)
        for informer in informers:
            informer.wait_synced()

    def config(self, pool: str) -> PoolConfig:
        body = self._pools.get(pool)
        if body is None:
            raise NoSuchConfigError(f"the cluster has no MachineConfigPool {pool}")
        name = config_to_serve(body)
        found = self._configs.get(name) if name else None
        if name is None or found is None:
            raise BadConfigError(f"MachineConfigPool {pool} has no rendered config yet: {name or 'none is named'}")
        version = (name, version_of(found))
        known = self._served.get(pool)
        if known is None or known.version != version:
            known = self._served[pool] = PoolConfig(name, version, served_config(found))
        return known

    def join_credential(self, node: str) -> tuple[object, bytes]:
        found = self._join.get(names.JOIN_SECRET, names.NAMESPACE) or {}
        encoded = (found.get("data") or {}).get(node)
        if not encoded:
            raise BadConfigError(f"Secret {names.NAMESPACE}/{names.JOIN_SECRET} has nothing for {node}")
        return encoded, base64.b64decode(encoded)


def config_to_serve(pool: Object) -> str | None:
    """What new machines get: the newest config, because to make a machine anew is the way to give it that one. A paused
    pool stays with the last that all of its machines had."""
    spec, status = (pool.get(part) or {} for part in ("spec", "status"))
    newest, last = ((part.get("configuration") or {}).get("name") for part in (spec, status))
    name = (last or newest) if spec.get("paused") else (newest or last)
    return str(name) if name else None


def _rendered_only(body: Object) -> Object:
    """Of all others only that they are there: their content is in these."""
    is_rendered = str(body["metadata"]["name"]).startswith(RENDERED)
    return body if is_rendered else {"metadata": body["metadata"]}


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cluster-machine-config-server", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="default: as the pod's service account")
    parser.add_argument("--release-version", default="", help="for the log")
    parser.add_argument("--certificates", type=Path, default=Path(CERTIFICATES), help="has tls.crt and tls.key")
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=PORT)
    return parser.parse_args(words)
