"""The file with the values of secrets for the local cloud."""

from pathlib import Path

import pytest

from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section
from asya_local.errors import LocalCloudError
from asya_local.secret_file import read_secret_file, secret_values

VALUE = "hunter2-and-more"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secrets.env"


def mesh(**secrets: dict[str, str]) -> MeshFile:
    actors = {name: {"handler": "shop.one", "secrets": names} for name, names in secrets.items()}
    return read_section(MeshFile, {"namespace": "shop", "actors": actors})


def test_lines_are_names_and_values(file: Path) -> None:
    file.write_text(
        "# a comment\n\n"
        "prod/openai=sk-=1=\n"
        "ssm:/shop/token = spaced out \n"
        "single='in \"quotes\"'\n"
        'double="two\\nlines"\n'
    )
    assert read_secret_file(file) == {
        "prod/openai": "sk-=1=",
        "ssm:/shop/token": "spaced out",
        "single": 'in "quotes"',
        "double": "two\nlines",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"a=1\n{VALUE}\n", ":2: should be NAME=value"),
        ("a=\n", ":1: should be NAME=value"),
        (f"a={VALUE}\na={VALUE}\n", ":2: a is there twice; keep one of them"),
        (f'a="{VALUE}\n', ":1: a value in double quotes should be a JSON string"),
    ],
)
def test_a_wrong_line_is_named_without_its_value(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(LocalCloudError) as caught:
        read_secret_file(file)
    assert caught.value.message == f"{file}{problem}"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_in_the_encodings_of_windows(file: Path, encoding: str) -> None:
    file.write_bytes("a=1\r\nb=ë\r\n".encode(encoding))
    assert read_secret_file(file) == {"a": "1", "b": "ë"}


def test_a_file_that_is_not_text(file: Path) -> None:
    file.write_bytes(b"a=\xff\n")
    with pytest.raises(LocalCloudError, match="is not UTF-8 text"):
        read_secret_file(file)


def test_only_the_values_of_the_mesh_are_stored(file: Path) -> None:
    file.write_text("a=1\nssm:/b=2\nother=3\n")
    assert secret_values(mesh(x={"KEY": "a"}, y={"KEY": "a", "TOKEN": "ssm:/b"}), file) == {"a": "1", "ssm:/b": "2"}


def test_missing_values_are_named_with_their_actors(file: Path) -> None:
    with pytest.raises(LocalCloudError) as caught:
        secret_values(mesh(x={"KEY": "a"}, y={"KEY": "a", "TOKEN": "ssm:/b"}), file)
    assert caught.value.message == (
        f"The mesh has secrets without a local value. Add to {file}: a=… (for x, y); ssm:/b=… (for y)"
    )


def test_a_mesh_without_secrets_needs_no_file(file: Path) -> None:
    assert secret_values(mesh(x={}), file) == {}


def test_webhooks_have_secrets_too(file: Path) -> None:
    webhook = {"route": ["a"], "webhook": {"secret": "hooks/github", "signature": "github"}}
    actors = {"a": {"handler": "shop.one"}}
    shop = read_section(MeshFile, {"namespace": "shop", "actors": actors, "triggers": {"pushed": webhook}})
    with pytest.raises(LocalCloudError, match=r"hooks/github=… \(for the webhook pushed\)"):
        secret_values(shop, file)
    file.write_text("hooks/github=2\n")
    assert secret_values(shop, file) == {"hooks/github": "2"}
