"""The fixtures of the tests of mesh files."""

from pathlib import Path

import pytest

from tests.unit.asya_infra.mesh_file.loading import write_code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with the handler `shop.one` and the jobs `heavy.crunch` and `heavy.crunch_all`; return its path."""
    monkeypatch.chdir(tmp_path)
    write_code(tmp_path)
    return tmp_path
