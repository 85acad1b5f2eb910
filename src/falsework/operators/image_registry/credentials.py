"""Who may push and pull: one user, whose password is generated and whose name says what he is.

Each of these gets what a Secret has and gives what it is to have: the same, if that is good. A password somebody has
set is good; one that was removed is made anew.
"""

from __future__ import annotations

import base64
import json
import secrets
import warnings
from collections.abc import Iterable

from falsework.errors import FalseworkError
from falsework.operators.image_registry.names import LOGIN

Files = dict[str, bytes]
"""The data of a Secret."""

USER = "registry"
_BCRYPT = "$2"
"""What its hashes begin with."""
_ROUNDS = 16
"""The password is 256 bits of chance, which nobody guesses however quickly he may try: it is to cost little."""


def login(old: Files, hosts: Iterable[str]) -> Files:
    """As people read it, and as a pull secret (.dockerconfigjson)."""
    password = _password(old)
    user = USER.encode()
    entry = {
        "username": USER,
        "password": password.decode(),
        "auth": base64.b64encode(user + b":" + password).decode(),
    }
    config = json.dumps({"auths": dict.fromkeys(sorted(hosts), entry)}, sort_keys=True)
    return {"username": user, "password": password, ".dockerconfigjson": config.encode()}


def _password(old: Files) -> bytes:
    # The end of a line is what an editor adds, and no part of a password.
    password = old.get("password", b"").strip() or secrets.token_urlsafe(32).encode()
    text = password.decode(errors="replace")
    if not text.isprintable() or "\ufffd" in text:
        raise FalseworkError(
            f"the password in Secret {LOGIN} is no text",
            cause="it has signs that nobody can type",
            fix="set another one, or remove it: then it is made",
        )
    return password


def private(old: Files, login: Files) -> Files:
    """For the registry: the password's hash, and what its replicas sign the state of uploads with."""
    user, _, known = old.get("htpasswd", b"").decode(errors="replace").strip().partition(":")
    password = login["password"].decode()
    is_good = user == USER and known.startswith(_BCRYPT) and _hashed(password, known) == known
    line = f"{USER}:{known if is_good else _hashed(password)}"
    return {
        "htpasswd": f"{line}\n".encode(),
        "http-secret": old.get("http-secret") or secrets.token_hex(32).encode(),
    }


def authorization(login: Files) -> str:
    """The header of HTTP."""
    return f"Basic {base64.b64encode(login['username'] + b':' + login['password']).decode()}"


def _hashed(password: str, salt: str = "") -> str:
    """By bcrypt, the only one the registry knows."""
    with warnings.catch_warnings():
        # The system's own is the only bcrypt at hand; Python has it up to 3.12.
        warnings.simplefilter("ignore", DeprecationWarning)
        import crypt

    return crypt.crypt(password, salt or crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=_ROUNDS))  # noqa: S324 - bcrypt
