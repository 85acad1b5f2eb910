"""What is drawn once and then belongs to the cluster: its ids, the kubeadmin password, a key for the bootstrap."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from dataclasses import dataclass

import bcrypt

from falsework.assets.graph import Asset, Files, Given
from falsework.assets.keys_in_folder import ADMIN_PASSWORD, SSH_KEY
from falsework.assets.pki import new_ssh_key

METADATA = "metadata.json"
KUBEADMIN = ADMIN_PASSWORD

_LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"
"""Without those that look like another: l, O, 0, 1."""
_BCRYPT_COST = 10
_ID_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels: five of them never make a word."""
_INFRA_NAME_LENGTH = 21


@dataclass(frozen=True)
class Ids:
    cluster_id: str
    infra_id: str


def metadata_asset(cluster_name: str) -> Asset:
    def make(_: Given) -> Files:
        ids = {"clusterName": cluster_name, "clusterID": str(uuid.uuid4()), "infraID": infra_id(cluster_name)}
        return {METADATA: json.dumps(ids).encode()}

    def check(files: Files) -> None:
        uuid.UUID(ids_in(files).cluster_id)

    return Asset(METADATA, make, facts={"cluster_name": cluster_name}, once=True, check=check)


def infra_id(cluster_name: str) -> str:
    name = re.sub("-+", "-", re.sub("[^A-Za-z0-9-]", "-", cluster_name))[:_INFRA_NAME_LENGTH].rstrip("-")
    return f"{name}-{''.join(secrets.choice(_ID_LETTERS) for _ in range(5))}"


def ids_in(files: Files) -> Ids:
    try:
        data = json.loads(files[METADATA])
        return Ids(str(data["clusterID"]), str(data["infraID"]))
    except (TypeError, KeyError):
        raise ValueError("it must have clusterName, clusterID and infraID") from None


def password_asset() -> Asset:
    def make(_: Given) -> Files:
        return {KUBEADMIN: new_password().encode()}

    def check(files: Files) -> None:
        if not files[KUBEADMIN].strip():
            raise ValueError("the password is empty")

    return Asset(KUBEADMIN, make, once=True, check=check)


def new_password() -> str:
    """Four groups of five, as a person can read them out."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def hash_of(password: bytes) -> bytes:
    """The work factor is that of OpenShift; bcrypt itself looks at the first 72 bytes only."""
    return bcrypt.hashpw(password.strip()[:72], bcrypt.gensalt(_BCRYPT_COST))


def ssh_key_asset() -> Asset:
    """For gathering logs from a bootstrap machine whose person forgot to give a key of theirs."""

    def make(_: Given) -> Files:
        private, public = new_ssh_key("falsework-bootstrap")
        return {SSH_KEY: private, f"{SSH_KEY}.pub": public}

    return Asset(SSH_KEY, make, once=True)
