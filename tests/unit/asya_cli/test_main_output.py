"""The command in a process of its own, with a standard output that takes nothing, or not every character."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asya_cli.errors import ExitCode

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("argument", ["--version", "schema"])
@pytest.mark.slow
def test_a_full_disk_is_told_in_two_lines(argument: str) -> None:
    with FULL.open("wb") as output:
        line = [sys.executable, "-m", "asya_cli.main", argument]
        done = subprocess.run(line, stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.COMMAND_FAILED
    assert done.stderr.splitlines() == [
        "asya: cannot write standard output: No space left on device",
        "Make room there, or write elsewhere.",
    ]


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "bills.py").write_text("def bill(payload):\n    return payload\n")
    mesh = tmp_path / "→.yaml"
    mesh.write_text("namespace: shop\ncode: .\nactors:\n  bill: {handler: bills.bill}\n")
    line = [sys.executable, "-m", "asya_cli.main", "validate", "--no-limits", "--mesh", str(mesh)]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1:strict"}
    done = subprocess.run(line, capture_output=True, env=environment, timeout=60, check=False)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert b"\\u2192.yaml: shop with 1 actor" in done.stdout


@pytest.mark.slow
def test_a_closed_standard_output_is_no_error() -> None:
    line = f"exec {sys.executable} -m asya_cli.main --version >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
