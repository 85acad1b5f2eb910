from __future__ import annotations

import subprocess
import sys


def test_the_firmware_is_quick_to_start() -> None:
    """It is started once for every machine, and six machines are switched on at once on two cores."""
    script = "import sys; import falsework.machines.firmware.boot; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    costly = {"asyncio", "http", "email", "ssl", "logging", "yaml", "cryptography"}
    assert not costly & set(done.stdout.split())
