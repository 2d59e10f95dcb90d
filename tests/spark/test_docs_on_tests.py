"""The snippets of `docs/how-to/test-your-actors.md` are a project whose tests pass."""

from pathlib import Path

import pytest

from asya_local.tools import find_java
from tests.doubles.snippets import run_tests, write_project

pytestmark = pytest.mark.spark


def test_the_snippets_pass(tmp_path: Path) -> None:
    count = write_project("test-your-actors.md", tmp_path)
    assert count >= 10
    assert f"{count} passed" in run_tests(tmp_path, JAVA_HOME=find_java())
