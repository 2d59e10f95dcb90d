"""The command in a process of its own, with a standard output that takes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from asya_cli.errors import ExitCode

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("argument", ["--version", "schema"])
def test_a_full_disk_is_told_in_two_lines(argument: str) -> None:
    with FULL.open("wb") as output:
        line = [sys.executable, "-m", "asya_cli.main", argument]
        done = subprocess.run(line, stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.COMMAND_FAILED
    assert done.stderr.splitlines() == [
        "asya: cannot write standard output: No space left on device",
        "Make room there, or write elsewhere.",
    ]
