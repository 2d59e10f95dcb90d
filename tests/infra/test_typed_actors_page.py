"""The snippets of `docs/how-to/typed-actors.md` are a project: its tests pass, and its mistake is found.

`tests/spark/test_typed_columns_page.py` runs those of its job.
"""

import re
from pathlib import Path

import pytest

from asya_infra.contracts.check import hold_together
from asya_infra.mesh_file import MeshFileError, load_mesh
from tests.doubles.snippets import run_tests, write_project
from tests.paths import PROJECT


def test_the_snippets_pass(tmp_path: Path) -> None:
    assert write_project("typed-actors.md", tmp_path) == 5
    assert "3 passed" in run_tests(tmp_path, "tests/test_contracts.py")


def test_the_message_of_the_page_is_the_actual_one(tmp_path: Path) -> None:
    write_project("typed-actors.md", tmp_path)
    hold_together(load_mesh(tmp_path / "mesh.yaml"), tmp_path / "build")
    page = (PROJECT / "docs" / "how-to" / "typed-actors.md").read_text()
    (signature,) = re.findall(r"`(def bill\(id: str, total: Decimal, placed: date\))`", page)
    (message,) = re.findall(r"^```text\n(.*)\n```$", page, re.MULTILINE)
    billing = tmp_path / "handlers" / "billing.py"
    code = re.sub(r"def bill\(.*?\)", signature, billing.read_text()).replace(', "note": note', "")
    billing.write_text(f"from datetime import date\n{code}")

    with pytest.raises(MeshFileError, match=re.escape(message)):
        hold_together(load_mesh(tmp_path / "mesh.yaml"), tmp_path / "build")
