"""What the local cloud's functions run is unpacked once."""

import tempfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from asya_local.code_cache import CodeCache, install


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A function's code, and a folder of its own for what is temporary."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "code.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("orders/score.py", "N = 1")
    return path


def unpacked(code: Path, into: Path) -> Path:
    into.mkdir()
    with CodeCache(str(code)) as file:
        file.extractall(str(into))
    return into


def test_every_process_sees_the_same_files_where_it_wants_them(code: Path, tmp_path: Path) -> None:
    first, second = (unpacked(code, tmp_path / name) for name in ("first", "second"))
    assert (second / "orders" / "score.py").read_text() == "N = 1"
    assert first.resolve() == second.resolve()
    first.unlink()  # as the end of its process does
    assert (second / "orders" / "score.py").exists()


def test_other_code_lies_elsewhere(code: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("orders/score.py", "N = 2")
    assert unpacked(code, tmp_path / "first").resolve() != unpacked(other, tmp_path / "second").resolve()


def test_a_part_cannot_be_shared(code: Path, tmp_path: Path) -> None:
    with CodeCache(str(code)) as file, pytest.raises(NotImplementedError):
        file.extractall(str(tmp_path / "part"), members=["orders/score.py"])


def test_the_runtime_unpacks_so() -> None:
    runtime = ModuleType("lambda_runtime")
    install(runtime)
    assert runtime.zipfile.ZipFile is CodeCache
    assert runtime.zipfile.LargeFileError is zipfile.LargeZipFile
