"""A whole cluster of a lab, and what clients of its API saw while it came up."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_watch import Watched
from lab_under_test import LabUnderTest
from steady_client import Report

UP_LIMIT = 600.0
DOMAIN = "lab.falsework.test"
MASTERS = ("master-0", "master-1", "master-2")
WORKERS = ("worker-0", "worker-1")


@dataclass(frozen=True)
class Raised:
    lab: LabUnderTest
    polled: Report
    watched: Watched
