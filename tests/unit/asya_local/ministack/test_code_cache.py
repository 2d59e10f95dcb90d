"""The code cache unpacks the code of functions once and links to it."""

import tempfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from asya_local.ministack.code_cache import CodeCache, install


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The zip file of a function, and a temporary folder of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "code.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("orders/score.py", "N = 1")
    return path


def unpack(code: Path, into: Path) -> Path:
    into.mkdir()
    with CodeCache(str(code)) as file:
        file.extractall(str(into))
    return into


def test_every_process_gets_a_link_to_the_same_files(code: Path, tmp_path: Path) -> None:
    first, second = (unpack(code, tmp_path / name) for name in ("first", "second"))
    assert (second / "orders" / "score.py").read_text() == "N = 1"
    assert first.resolve() == second.resolve()
    first.unlink()  # as MiniStack does at the end of the process
    assert (second / "orders" / "score.py").exists()


def test_other_code_has_another_folder(code: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("orders/score.py", "N = 2")
    assert unpack(code, tmp_path / "first").resolve() != unpack(other, tmp_path / "second").resolve()


def test_a_part_of_the_content_is_refused(code: Path, tmp_path: Path) -> None:
    with CodeCache(str(code)) as file, pytest.raises(NotImplementedError, match="whole zip files only"):
        file.extractall(str(tmp_path / "part"), members=["orders/score.py"])


def test_ministack_checks_only_names_that_may_lead_out_of_the_folder(tmp_path: Path) -> None:
    inside, outside = ["python/asya/data.py", "python/a..b.py"], ["/etc/passwd", "../code.py", "python/../../code.py"]
    with zipfile.ZipFile(tmp_path / "layer.zip", "w") as file:
        for name in (*inside, *outside):
            file.writestr(name, "N = 1")
    with CodeCache(str(tmp_path / "layer.zip")) as file:
        assert file.namelist() == outside


def test_the_runtime_of_ministack_uses_the_cache() -> None:
    runtime = ModuleType("lambda_runtime")
    install(runtime)
    assert runtime.zipfile.ZipFile is CodeCache
    assert runtime.zipfile.LargeFileError is zipfile.LargeZipFile
