"""Runs the snippets of a page as a project of its own. A snippet of a file begins with its name as a comment."""

import re
import subprocess
import sys
from pathlib import Path

from tests.paths import PROJECT

_FENCE = re.compile(r"^```(?:python|yaml)\n# (?P<file>\S+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def write_project(page: str, folder: Path) -> int:
    """Write the files of a page in `docs/how-to`; returns the number of their tests."""
    text = (PROJECT / "docs" / "how-to" / page).read_text()
    files = {match["file"]: match["text"] for match in _FENCE.finditer(text)}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return sum(content.count("def test_") for content in files.values())


def run_tests(folder: Path, *files: str, **environment: str) -> str:
    """Run the tests of a project, or those of some of its files, with nothing of this one; returns the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    command += files
    result = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    return result.stdout
