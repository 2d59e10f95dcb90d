"""The sample of `python -m tests.calendar`: the tests about times hold 400 days from now, where it is another day."""

import subprocess
import sys

import pytest

from tests.paths import PROJECT


@pytest.mark.slow
def test_the_sample_holds_400_days_from_now() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.calendar", "--sample", "--processes", "0"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
