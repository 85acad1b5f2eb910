"""A thousand objects written before something goes wrong, and looked for afterwards."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

from falsework.kube.client import ApiError, Client
from falsework.kube.resources import CONFIG_MAPS
from falsework.machines.lab_api import lab_client
from falsework.machines.view import View
from lab_under_test import LabUnderTest

COUNT = 1000
_AT_ONCE = 4
_LABEL = "falsework-soak"
_NAMESPACE = "default"


def write_keys(lab: LabUnderTest) -> None:
    client = _client(lab)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda number: _write(client, number), range(COUNT)))


def keys_missing(lab: LabUnderTest) -> list[str]:
    """Those that are gone or changed."""
    found = {
        str(item["metadata"]["name"]): item["data"]["value"]
        for item in _client(lab).list(CONFIG_MAPS, _NAMESPACE, labels=_LABEL).items
    }
    return [_name(number) for number in range(COUNT) if found.get(_name(number)) != _value(number)]


def _client(lab: LabUnderTest) -> Client:
    return lab_client(View(lab.site, lab.lab))


def _write(client: Client, number: int) -> None:
    body = {
        "metadata": {"name": _name(number), "namespace": _NAMESPACE, "labels": {_LABEL: ""}},
        "data": {"value": _value(number)},
    }
    try:
        client.create(CONFIG_MAPS, body)
    except ApiError as error:
        # Answered, though the answer was lost: it is there.
        if not error.is_conflict:
            raise


def _name(number: int) -> str:
    return f"soak-{number:04}"


def _value(number: int) -> str:
    return hashlib.sha256(_name(number).encode()).hexdigest()
