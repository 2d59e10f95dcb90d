"""The job of `docs/how-to/typed-actors.md` runs, and its tests pass, on the Spark session of the other tests."""

import runpy
from pathlib import Path

import pytest

from asya.testing import Mesh
from tests.doubles.snippets import write_project

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("spark")
def test_the_snippets_of_the_job_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project("typed-actors.md", tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "jobs")
    mesh = Mesh(tmp_path / "mesh.yaml")
    tests = runpy.run_path(str(tmp_path / "tests" / "test_reminders.py"))
    functions = [function for name, function in tests.items() if name.startswith("test_")]
    assert len(functions) == 2
    for function in functions:
        function(mesh)
