"""Runs checks side by side, a few at a time: the cluster has other things to do."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from falsework.checks.verify.model import Check, Result, Verdict, failed
from falsework.checks.verify.said import short
from falsework.errors import FalseworkError, UsageError

LIMIT = 30.0
"""Seconds for all of them together."""
AT_ONCE = 4


def chosen(checks: Sequence[Check], patterns: Sequence[str]) -> list[Check]:
    """Those whose id is one of these, matches one (`*`), or begins with one and a slash; without any, all."""
    if not patterns:
        return list(checks)
    for pattern in patterns:
        if not any(_matches(check.id, pattern) for check in checks):
            raise UsageError(f"no check is called {pattern}", fix="`falsework verify --list` lists them")
    return [check for check in checks if any(_matches(check.id, pattern) for pattern in patterns)]


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern.rstrip('/')}/")


def run(checks: Sequence[Check], tell: Callable[[Result], None] = lambda _: None) -> list[Result]:
    """In the order of the checks; `tell` hears of each as it ends."""

    def one(check: Check) -> Result:
        started = time.monotonic()
        result = Result(check, _looked(check), time.monotonic() - started)
        tell(result)
        return result

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="verify") as pool:
        return list(pool.map(one, checks))


def _looked(check: Check) -> Verdict:
    try:
        return check.look()
    except FalseworkError as error:
        return failed(short(f"{error.what}: {error.cause}" if error.cause else error.what))
    except OSError as error:
        return failed(short(str(error)))
