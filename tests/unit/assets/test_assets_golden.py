"""Manifests and configs as a person reads them, against what they were when someone last looked at them.

Keys, certificates and ids are replaced by what they are. After a change that is meant, run the tests with
FALSEWORK_UPDATE_GOLDEN=1 in the environment, and read the difference before committing it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from asset_samples import finished

from falsework import machine_code
from falsework.assets.ignition import content_of
from falsework.assets.serialize import to_yaml

GOLDEN = Path(__file__).parent / "golden"
REPLACED = (
    (re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL), r"<\1>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"\blab-[b-z2-9]{5}\b"), "lab-<random>"),
    (re.compile(r"rendered-(master|worker)-[0-9a-f]{32}"), r"rendered-\1-<hash>"),
    (re.compile(r"\$2b\$10\$[./A-Za-z0-9]{53}"), "<bcrypt>"),
    (re.compile(r"ssh-ed25519 \S+ falsework-bootstrap"), "ssh-ed25519 <key> falsework-bootstrap"),
)
STRUCTURED = (".yaml", ".yml", ".json", ".patch", "kubeconfig", "kubeconfig-loopback", ".conf")


def readable(value: Any) -> Any:
    """Everything decoded as deep as it goes, everything by chance replaced."""
    if isinstance(value, dict):
        return {readable(key): readable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [readable(entry) for entry in value]
    if not isinstance(value, str):
        return value
    if value.startswith("data:"):
        return {"data URL": readable(content_of(value).decode())}
    if decoded := _decoded(value):
        return {"base64": readable(decoded)}
    if value.startswith('{"ignition":'):
        return readable(json.loads(value))
    for pattern, replacement in REPLACED:
        value = pattern.sub(replacement, value)
    return value


def loaded(text: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = list(yaml.load_all(text, Loader=loader))
    return documents[0] if len(documents) == 1 else documents


def _decoded(text: str) -> str | None:
    """Base64 in Secrets and kubeconfigs always is longer than the words that look like it."""
    if len(text) < 24 or not re.fullmatch(r"[A-Za-z0-9+/]+=*", text):
        return None
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def readable_config(path: Path) -> Any:
    config = json.loads(path.read_bytes())
    for entry in config.get("storage", {}).get("files", []):
        entry["mode"] = oct(entry["mode"])
        content, name = content_of(entry["contents"]["source"]), entry["path"]
        text = "<code>" if name == machine_code.PATH else content.decode()
        if name.startswith(("/opt/openshift/manifests/", "/opt/openshift/openshift/")) and "cvo-" not in name:
            entry["contents"] = "as in the manifests"
        elif name.endswith(STRUCTURED) and "[" not in text[:1]:
            entry["contents"] = readable(loaded(text))
        else:
            entry["contents"] = readable(text)
        del entry["overwrite"], entry["user"]
    return readable(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished(tmp_path_factory.mktemp("golden"))


def compare(name: str, found: Any) -> None:
    path = GOLDEN / name
    content = to_yaml(found)
    if os.environ.get("FALSEWORK_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    assert content.decode() == path.read_text()


@pytest.mark.parametrize("part", ["manifests", "openshift"])
def test_manifests(folder: Path, part: str) -> None:
    found = {path.name: readable(loaded(path.read_text())) for path in sorted((folder / part).iterdir())}
    compare(f"{part}.yaml", found)


@pytest.mark.parametrize(
    "name", ["bootstrap", "master", "machines/master-0", "complete/master-0", "rendered/worker", "machines/worker-1"]
)
def test_ignition_configs(folder: Path, name: str) -> None:
    compare(f"{name.replace('/', '-')}.ign.yaml", readable_config(folder / f"{name}.ign"))


def test_the_admins_kubeconfig_and_metadata(folder: Path) -> None:
    files = {name: loaded((folder / name).read_text()) for name in ("auth/kubeconfig", "metadata.json")}
    compare("others.yaml", readable(files))
