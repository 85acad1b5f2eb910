"""`falsework verify` on a cluster that is in order, and on one that is not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from xml.etree import ElementTree as ET

from lab_under_test import LabUnderTest

LIMIT = 30.0
NOT_IN_A_LAB = (
    "000/kvm/",
    "000/helper/boot-files",
    "000/nfs/",
    "000/registry/import",
    "000/console/",
    "000/test/console",
)
BEFORE_THE_PIVOT = ("001/progress/bootkube", "002/observe/bootkube")


def test_everything_the_guides_check_passes(lab: LabUnderTest) -> None:
    # Whoever changed something before has been heard of by every operator.
    lab.run("wait-for", "install-complete", limit=300)
    began = time.monotonic()
    report = json.loads(lab.run("verify", "-o", "json"))
    took = time.monotonic() - began
    outcomes = {check["id"]: check for check in report["checks"]}
    print(f"\n{len(outcomes)} checks in {took:.1f} s")
    skipped = [name for name, check in outcomes.items() if check["outcome"] == "skip"]
    assert all(name.startswith((*NOT_IN_A_LAB, *BEFORE_THE_PIVOT)) for name in skipped), skipped
    assert len(outcomes) - len(skipped) > 100
    assert took < LIMIT


def test_a_fault_is_found_and_told(lab: LabUnderTest, tmp_path: Path) -> None:
    lab.inside("worker-0", "systemctl", "stop", "kube-proxy.service", "kube-proxy.path")
    try:
        lab.inside("worker-0", "nft", "delete", "table", "ip", "kube-proxy")
        told = tmp_path / "verified.xml"
        lab.run("verify", "--only", "network/cluster-dns/worker-0", "-o", "junit", "--output", str(told), code=1)
    finally:
        lab.inside("worker-0", "systemctl", "start", "kube-proxy.service", "kube-proxy.path")
    suite = ET.fromstring(told.read_text())  # noqa: S314 - our own
    assert [case.find("failure") is not None for case in suite.iter("testcase")] == [True]
