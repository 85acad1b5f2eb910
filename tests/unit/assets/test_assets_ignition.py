"""Ignition configs: building, merging, rendering."""

from __future__ import annotations

from typing import Any

import pytest
from asset_samples import sample_site

from falsework.assets import ignition, machine_configs, serialize
from falsework.assets.ignition import File, Link, Unit, config, content_of, data_url, files_in, merge
from falsework.assets.node import NodeFacts
from falsework.assets.objects import machine_config
from falsework.assets.rendered_config import Rendered, render
from falsework.errors import UsageError
from falsework.site.model import Role


def test_a_config_has_only_what_it_is_given() -> None:
    assert config() == {"ignition": {"version": "3.2.0"}}
    built = config(files=[File("/a", b"x", 0o600)], links=[Link("/b", "/a")], units=[Unit("c.service", enabled=True)])
    assert built["storage"]["files"][0]["mode"] == 384
    assert built["storage"]["links"] == [{"path": "/b", "target": "/a", "overwrite": True, "hard": False}]
    assert built["systemd"]["units"] == [{"name": "c.service", "enabled": True}]
    assert "passwd" not in config(ssh_keys={"core": ()})


@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256))])
def test_data_urls_give_back_what_went_in(content: bytes) -> None:
    assert content_of(data_url(content)) == content


def test_other_data_urls_are_read_and_other_urls_refused() -> None:
    assert content_of("data:,a%20b") == b"a b"
    with pytest.raises(ValueError, match="not a data URL"):
        content_of("https://example/x")
    with pytest.raises(ValueError, match="not a data URL"):
        content_of("data:;base64,?")


def test_merging_is_by_path_and_name_and_the_child_wins() -> None:
    parent = config(
        files=[File("/a", b"1"), File("/b", b"1")], units=[Unit("u", "old", enabled=True)], ssh_keys={"core": ["k1"]}
    )
    child = config(
        files=[File("/b", b"2", 0o600)], units=[Unit("u", dropins={"x.conf": "drop"})], ssh_keys={"core": ["k1", "k2"]}
    )
    merged = merge(parent, child)
    assert files_in(merged) == {"/a": b"1", "/b": b"2"}
    assert merged["storage"]["files"][1]["mode"] == 0o600
    (unit,) = merged["systemd"]["units"]
    assert unit == {
        "name": "u",
        "enabled": True,
        "contents": "old",
        "dropins": [{"name": "x.conf", "contents": "drop"}],
    }
    assert merged["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["k1", "k2"]}]
    assert files_in(parent)["/b"] == b"1", "neither is changed"


def rendered(*extra: dict[str, Any]) -> Rendered:
    facts = NodeFacts.of(sample_site(), "sandbox")
    return render(Role.WORKER, [*extra, *machine_configs.built_in(Role.WORKER, facts, b"ca", b"ca", None)])


def test_machine_configs_are_merged_in_the_order_of_their_names() -> None:
    first = machine_config("00-a", "worker", config(files=[File("/etc/crictl.yaml", b"early")]))
    last = machine_config("99-z", "worker", config(files=[File("/etc/crictl.yaml", b"late")]))
    assert files_in(rendered(last, first).served)["/etc/crictl.yaml"] == b"late"
    assert files_in(rendered(first).served)["/etc/crictl.yaml"] != b"early"
    sources = rendered(last, first).pool["spec"]["configuration"]["source"]
    names = ["00-a", "00-worker", "01-worker-container-runtime", "01-worker-kubelet", "99-z"]
    assert [entry["name"] for entry in sources] == names


def test_the_rendered_name_follows_the_content() -> None:
    other = machine_config("50-x", "worker", config(files=[File("/etc/x", b"x")]))
    assert rendered().name == rendered().name
    assert rendered().name != rendered(other).name
    prefix, digest = rendered().name.rsplit("-", 1)
    assert (prefix, len(digest)) == ("rendered-worker", 32)
    assert rendered().name.encode() in files_in(rendered().served)["/etc/machine-config-daemon/node-annotations.json"]


def test_kernel_arguments_add_up() -> None:
    one = machine_config("50-a", "worker", config(), kernelArguments=["a", "b"])
    two = machine_config("50-b", "worker", config(), kernelArguments=["b", "c"])
    assert rendered(one, two).machine_config["spec"]["kernelArguments"] == ["a", "b", "c"]


def test_a_persons_machine_config_that_cannot_be_merged_is_named() -> None:
    old = machine_config("50-a", "worker", {"ignition": {"version": "2.2.0"}})
    with pytest.raises(UsageError, match=r"openshift/mine\.yaml"):
        machine_configs.of_role(Role.WORKER, {"openshift/mine.yaml": serialize.to_yaml(old)})
    nameless = b"apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nspec: {}\n"
    with pytest.raises(UsageError, match=r"metadata\.name"):
        machine_configs.of_role(Role.WORKER, {"openshift/mine.yaml": nameless})


@pytest.mark.parametrize("content", [b"a: [", b"\xff\x80", b"- 1\n", b"text\n", b"kind: [1]\n"])
def test_a_persons_manifest_that_is_none_is_named(content: bytes) -> None:
    with pytest.raises(UsageError, match=r"manifests/mine\.yaml"):
        serialize.documents_in("manifests/mine.yaml", content)


def test_lists_and_several_documents_are_taken_apart() -> None:
    content = b"kind: List\nitems:\n- kind: A\n- kind: B\n---\nkind: C\n---\n"
    assert [found["kind"] for found in serialize.documents_in("x", content)] == ["A", "B", "C"]


def test_masters_are_tainted_and_workers_are_not() -> None:
    facts = NodeFacts.of(sample_site(), "sandbox")
    for role, tainted in ((Role.MASTER, True), (Role.WORKER, False)):
        served = render(role, machine_configs.built_in(role, facts, b"ca", b"ca", None)).served
        assert (b"registerWithTaints" in files_in(served)["/etc/kubernetes/kubelet.conf"]) is tainted
    assert ignition.SPEC == "3.2.0"
