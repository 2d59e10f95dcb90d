"""`asya data`: between files and the data of a mesh, or to a clear error."""

import os
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ResponseStreamingError
from moto import mock_aws
from typer.testing import CliRunner, Result

from asya.client import resources
from asya.client.errors import MeshError
from asya.client.mesh_client import MeshClient
from asya.protocol.keys import S3Prefix
from asya_cli.errors import CommandError, ExitCode, exit_code_of
from asya_cli.main import app
from asya_cli.options import MeshOptions


class Mesh:
    """Stands for a mesh, and keeps what it gets."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def upload(self, reference: str, body: bytes | BinaryIO) -> str:
        self.objects[reference] = body if isinstance(body, bytes) else body.read()
        return f"s3://bucket/data/{reference}"


@pytest.fixture
def mesh(monkeypatch: pytest.MonkeyPatch) -> Mesh:
    made = Mesh()
    monkeypatch.setattr(MeshOptions, "client", lambda _: made)
    return made


def upload(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", "put", *map(str, arguments)])


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


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The bucket of a mesh, in a fake S3."""
    with mock_aws():
        s3 = boto3.client("s3", "us-east-1")
        s3.create_bucket(Bucket="bucket")
        connection: Any = SimpleNamespace(data=S3Prefix("bucket", "data/"), s3=lambda: s3)
        monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection))
        yield s3


def run(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(app, ["data", *arguments], input=text)


@pytest.mark.slow
def test_files_go_there_and_back(bucket: Any, tmp_path: Path) -> None:
    assert run("put", "-", "raw/a.txt", text="whale").stdout == "s3://bucket/data/raw/a.txt\n"
    bucket.put_object(Bucket="bucket", Key="data/raw/b.txt", Body=b"x" * 1234)
    bucket.put_object(Bucket="bucket", Key="data/rawest.txt", Body=b"")
    bucket.put_object(Bucket="bucket", Key="results/raw/c.txt", Body=b"")
    rows = [line.split() for line in run("ls", "raw/").stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("5", "raw/a.txt"), ("1,234", "raw/b.txt")]
    assert len(run("ls").stdout.splitlines()) == 3
    assert run("get", "raw/a.txt").stdout == "whale"
    file = tmp_path / "b.txt"
    assert run("get", "raw/b.txt", str(file)).stdout == ""
    assert file.read_bytes() == b"x" * 1234


def test_a_long_list_says_so(bucket: Any) -> None:
    for name in "abc":
        bucket.put_object(Bucket="bucket", Key=f"data/{name}", Body=b"")
    done = run("ls", "-n", "2")
    assert len(done.stdout.splitlines()) == 2
    assert "and more; -n 20" in done.stderr
    assert "no file below s3://bucket/data/raw/" in run("ls", "raw").stderr


def test_a_file_that_is_not_there_is_not_found(bucket: Any) -> None:
    error = run("get", "raw/none.txt").exception
    assert isinstance(error, CommandError)
    assert (error.problem, error.code) == ("there is no s3://bucket/data/raw/none.txt", ExitCode.NOT_FOUND)
    assert isinstance(run("get", "../other").exception, CommandError)
    assert run("ls", "../other").stdout == ""


@pytest.mark.rule("1.references")
@pytest.mark.slow
def test_1_an_object_of_any_key_is_listed_and_read(bucket: Any) -> None:
    for key in ("invoice [final].pdf", "a//b", "../x", "new\nline", "100%+ "):
        bucket.put_object(Bucket="bucket", Key=f"data/{key}", Body=key.encode())
        assert run("get", key).stdout == key
    assert len(run("ls").stdout.splitlines()) == 5


@pytest.mark.parametrize("plant", [os.symlink, os.link])
@pytest.mark.parametrize("name", [".b.txt.part", "b.txt"])
def test_a_planted_link_leads_nowhere(bucket: Any, tmp_path: Path, plant: Any, name: str) -> None:
    """Another user of the machine has made it in a shared folder, such as /tmp."""
    bucket.put_object(Bucket="bucket", Key="data/raw/b.txt", Body=b"whale")
    own = tmp_path / "own"
    own.write_text("keys")
    plant(own, tmp_path / name)
    assert run("get", "raw/b.txt", str(tmp_path / "b.txt")).exit_code == 0
    assert own.read_text() == "keys"
    assert (tmp_path / "b.txt").read_bytes() == b"whale"
    assert {each.name for each in tmp_path.iterdir()} <= {"own", "b.txt", name}


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_is_no_file_to_write(bucket: Any, folder: str) -> None:
    bucket.put_object(Bucket="bucket", Key="data/raw/a.txt", Body=b"whale")
    error = run("get", "raw/a.txt", folder).exception
    assert isinstance(error, CommandError)
    assert error.problem == f"{folder} is a folder"
    assert error.advice == f"Give a file, such as {Path(folder) / 'a.txt'}."


def test_a_file_stays_whole_when_the_reading_breaks_off(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ResponseStreamingError(error="reset")

    monkeypatch.setattr(resources, "open_object", lambda *_: Broken())
    file = tmp_path / "report.html"
    file.write_text("old")
    error = run("get", "report.html", str(file)).exception
    assert isinstance(error, CommandError)
    assert error.code is ExitCode.UNREACHABLE
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("report.html", "old")]


def test_a_service_that_is_gone_is_unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    s3 = boto3.client(
        "s3", "us-east-1", endpoint_url="http://127.0.0.1:1", aws_access_key_id="a", aws_secret_access_key="b",
        config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    connection: Any = SimpleNamespace(data=S3Prefix("bucket", "data/"), s3=lambda: s3)
    monkeypatch.setattr(MeshOptions, "client", lambda _: MeshClient(connection))
    (tmp_path / "a").touch()
    for arguments in (("ls",), ("get", "a"), ("put", str(tmp_path / "a"), "a")):
        error = run(*arguments).exception
        assert isinstance(error, MeshError), error
        assert exit_code_of(error) is ExitCode.UNREACHABLE
