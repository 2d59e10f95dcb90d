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
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return sum(content.count("def test_") for content in files.values())


# pytest once in each folder, in one process: importing the test kit takes longer than the tests of a page.
_EACH_FOLDER = """
import os, sys, pytest
paths, failed = list(sys.path), []
for folder in sys.argv[1:]:
    os.chdir(folder)
    if pytest.main(["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", folder]):
        failed.append(folder)
    sys.path[:] = paths
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(folder):
            del sys.modules[name]
sys.exit(f"failed: {failed}" if failed else 0)
"""


def run_all_tests(*folders: Path) -> str:
    """Run the tests of several projects with nothing of this one; returns the output."""
    command = [sys.executable, "-c", _EACH_FOLDER, *map(str, folders)]
    result = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def run_tests(folder: Path, *files: str, **environment: str) -> str:
    """Run the tests of a project, or those of some of its files, with nothing of this one; returns the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    command += files
    result = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    return result.stdout
