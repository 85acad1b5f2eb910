"""The last word of `falsework up`."""

from __future__ import annotations

from pathlib import Path

from falsework.site.load import default_site
from falsework.stages.events import Event
from falsework.stages.model import Stage
from falsework.stages.summary import last_run, summary

STAGES = [
    Stage(name=name, title=f"Do {name}", why="because", run=lambda _: None) for name in ("first", "second", "third")
]
EVENTS: list[Event] = [
    {"kind": "run", "state": "started"},
    {"kind": "stage", "stage": "first", "state": "failed", "seconds": 99.0},
    {"kind": "run", "state": "failed", "seconds": 99.0},
    {"kind": "run", "state": "started"},
    {"kind": "stage", "stage": "first", "state": "skipped"},
    {"kind": "stage", "stage": "second", "state": "started"},
    {"kind": "stage", "stage": "second", "state": "finished", "seconds": 12.34},
    {"kind": "stage", "stage": "third", "state": "finished", "seconds": 130.0},
    {"kind": "run", "state": "finished", "seconds": 145.2},
]


def told(console: str = "") -> str:
    return "\n".join(summary(default_site(), Path("/lab"), STAGES, last_run(EVENTS), "1.36.2", console))


def test_only_the_last_run_counts() -> None:
    assert len(last_run(EVENTS)) == 6
    assert last_run([]) == []


def test_what_was_built_and_how_long_it_took() -> None:
    text = told()
    assert "lab.falsework.test is up: a helper, 3 masters, 2 workers; Kubernetes 1.36.2; 2 min 25 s\n" in text
    assert "  Do first   done already\n  Do second     12.3 s\n  Do third     130.0 s\n" in text


def test_what_to_type_next() -> None:
    text = told()
    for words in ("falsework verify --dir /lab", "kubectl --dir /lab get nodes", "/lab/auth/kubeconfig"):
        assert words in text
    assert "https://NAME.apps.lab.falsework.test" in text
    assert "The password of kubeadmin is in /lab/auth/kubeadmin-password." in text
    assert "console is" not in text


def test_the_console_is_named_when_there_is_one() -> None:
    address = "https://console-openshift-console.apps.lab.falsework.test"
    assert f"The console is {address}; user kubeadmin, password in /lab/auth/kubeadmin-password" in told(address)
