"""Where an API is and who asks it: read from a kubeconfig, or from what a pod is given.

Of kubeconfigs only what proves both sides is taken: a server whose certificate nobody checks is refused, and so are
programs that fetch credentials. Keys and tokens are in no message and no representation.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from falsework.errors import FalseworkError

POD_SECRETS = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API_SERVER_URL = Path("/etc/kubernetes/apiserver-url.env")
"""Where a node has the address of the load balancer: the Service's works only once the network does."""


@dataclass(frozen=True)
class Access:
    host: str
    port: int
    context: ssl.SSLContext = field(repr=False)
    server_name: str
    """The name its certificate must have."""
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Read anew for every connection: a pod's token is replaced while it runs."""

    @property
    def url(self) -> str:
        return f"https://[{self.host}]:{self.port}" if ":" in self.host else f"https://{self.host}:{self.port}"

    def bearer(self) -> str:
        if self.token_file is not None:
            try:
                return self.token_file.read_text().strip()
            except OSError as error:
                raise FalseworkError(f"{self.token_file} cannot be read", cause=str(error.strerror)) from None
        return self.token


def from_kubeconfig(path: Path) -> Access:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FalseworkError(f"{path} cannot be read", cause=str(error.strerror)) from None
    try:
        return _access(_parsed(content), path.parent)
    except (KeyError, TypeError, ValueError, AttributeError, ssl.SSLError, OSError) as error:
        # The text of some of these holds what they stumbled over, which may be a key.
        cause = str(error) if isinstance(error, _BadConfigError | FileNotFoundError) else type(error).__name__
        raise FalseworkError(
            f"{path} is no kubeconfig Falsework can use", cause=cause, fix="make it again, or name another one"
        ) from None


def from_pod() -> Access:
    """The service account of the pod this runs in; by the load balancer, if the pod is given the node's file."""
    settings = _settings_in(API_SERVER_URL) or os.environ
    host, port = settings.get("KUBERNETES_SERVICE_HOST", ""), settings.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise FalseworkError(
            "this is no pod with a service account",
            cause="KUBERNETES_SERVICE_HOST is not set",
            fix="name a kubeconfig",
        )
    authority = POD_SECRETS / "ca.crt"
    try:
        context = _context(authority.read_bytes())
    except OSError as error:
        raise FalseworkError(f"{authority} cannot be used", cause=str(error.strerror or type(error).__name__)) from None
    return Access(host, int(port), context, host, token_file=POD_SECRETS / "token")


def _settings_in(path: Path) -> dict[str, str]:
    """Lines of NAME='value', as systemd and shells read them; empty without the file."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise FalseworkError(f"{path} cannot be read", cause=str(error.strerror)) from None
    pairs = (line.strip().partition("=") for line in lines)
    return {name: value.strip("'\"") for name, sign, value in pairs if sign and not name.startswith("#")}


class _BadConfigError(ValueError):
    """Its text may be shown."""


def _parsed(content: bytes) -> dict[str, Any]:
    import yaml  # late: what needs no kubeconfig runs where there is no YAML

    try:
        config = yaml.safe_load(content)
    except yaml.YAMLError:
        raise _BadConfigError("it is not YAML") from None
    if not isinstance(config, dict):
        raise _BadConfigError("it is not a mapping")
    return config


def _access(config: dict[str, Any], folder: Path) -> Access:
    context = _named(config, "contexts", config.get("current-context"))["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    user = _named(config, "users", context["user"]).get("user") or {}
    if cluster.get("insecure-skip-tls-verify"):
        raise _BadConfigError("it trusts any server (insecure-skip-tls-verify)")
    if unknown := {"exec", "auth-provider", "username", "as"} & user.keys():
        raise _BadConfigError(f"it uses {', '.join(sorted(unknown))}")
    server = urlsplit(cluster["server"])
    if server.scheme != "https" or not server.hostname or server.path not in ("", "/"):
        raise _BadConfigError("its server is not of the form https://host:port")
    authority = _data(cluster, "certificate-authority", folder)
    if authority is None:
        raise _BadConfigError("it says not whom to trust (certificate-authority-data)")
    tls = _context(authority)
    certificate, key = _data(user, "client-certificate", folder), _data(user, "client-key", folder)
    if certificate and key:
        _load_pair(tls, certificate, key)
    token_file = user.get("tokenFile")
    return Access(
        server.hostname,
        server.port or 443,
        tls,
        cluster.get("tls-server-name") or server.hostname,
        token=user.get("token") or "",
        token_file=folder / token_file if token_file else None,
    )


def _named(config: dict[str, Any], kind: str, name: object) -> dict[str, Any]:
    for entry in config.get(kind) or ():
        if entry["name"] == name:
            return dict(entry)
    raise _BadConfigError(f"none of its {kind} is called {name}")


def _data(entry: dict[str, Any], key: str, folder: Path) -> bytes | None:
    """What is embedded, or in the file that is named, seen from the kubeconfig's folder."""
    if encoded := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error:
            raise _BadConfigError(f"{key}-data is not base64") from None
    return (folder / entry[key]).read_bytes() if entry.get(key) else None


def mutual(authority: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Trusts one authority, and shows a certificate of its own."""
    context = _context(authority)
    _load_pair(context, certificate, key)
    return context


def _context(authority: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.decode("ascii"))
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The ssl module takes files only: this one is in memory and has no name."""
    with os.fdopen(os.memfd_create("client"), "wb") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
