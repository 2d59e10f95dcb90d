"""`asya upload`: from a file to an object in the data of a mesh, or to a clear error."""

import os
import re
from pathlib import Path
from typing import BinaryIO

import pytest
from typer.testing import CliRunner, Result

from asya_cli.errors import CommandError
from asya_cli.main import app


class Mesh:
    """Stands for a mesh, and keeps what it gets."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def upload(self, reference: str, body: BinaryIO) -> str:
        self.objects[reference] = body.read()
        return f"s3://bucket/data/{reference}"


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Mesh:
    made = Mesh()
    monkeypatch.setattr("asya_cli.upload.client", lambda *_: made)
    return made


def upload(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["upload", *map(str, arguments)])


def test_a_file_gets_the_name_that_payloads_use(mesh: Mesh, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"whale")
    answer = upload(file, "texts/moby-dick.txt")
    assert (answer.exit_code, answer.stdout) == (0, "s3://bucket/data/texts/moby-dick.txt\n")
    assert mesh.objects == {"texts/moby-dick.txt": b"whale"}


@pytest.mark.parametrize("reference", ["../other", "/absolute", "s3://bucket/key"])
def test_a_reference_leaves_no_data_folder(mesh: Mesh, tmp_path: Path, reference: str) -> None:
    (tmp_path / "a.txt").touch()
    answer = upload(tmp_path / "a.txt", reference)
    assert isinstance(answer.exception, CommandError)
    assert "is not a reference" in answer.exception.problem
    assert mesh.objects == {}


def test_a_missing_file_and_a_large_one_are_named(mesh: Mesh, tmp_path: Path) -> None:
    missing = upload(tmp_path / "none.txt", "a.txt").exception
    with (tmp_path / "large.bin").open("wb") as file:
        os.truncate(file.fileno(), 5 * 1024**3 + 1)
    large = upload(tmp_path / "large.bin", "a.txt").exception
    assert isinstance(missing, CommandError)
    assert re.search(r"none\.txt: No such file", missing.problem)
    assert isinstance(large, CommandError)
    assert "large.bin has more than 5 GB" in large.problem
    assert mesh.objects == {}
