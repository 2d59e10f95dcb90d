"""Where the options that select a mesh come from, if nobody types them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from asya.client.defaults import OPTIONS, read_defaults
from asya.client.errors import MeshError
from asya_cli.main import app
from asya_cli.options import MeshOptions, default_map

PRODUCTION = 'namespace = "shop-prod"\nregion = "eu-north-1"\n'


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "defaults"),
    [
        ([], {}, None, {}),
        ([], {}, PRODUCTION, {"namespace": "shop-prod", "region": "eu-north-1"}),
        ([], {"ASYA_REGION": "us-east-1"}, PRODUCTION, {"namespace": "shop-prod", "region": "us-east-1"}),
        ([], {"ASYA_STATE": "x"}, PRODUCTION, {"state": "x"}),
        ([], {"ASYA_NAMESPACE": "shop"}, 'state = "there"', {"namespace": "shop"}),
        (["status", "a", "--state", "x"], {}, PRODUCTION, {}),
        (["status", "a", "--state=x"], {"ASYA_NAMESPACE": "shop", "ASYA_PROFILE": "p"}, None, {}),
        (["status", "a", "--namespace", "other"], {"ASYA_STATE": "x"}, PRODUCTION, {"region": "eu-north-1"}),
        ([], {"ASYA_STATE": ""}, None, {}),
    ],
)
def test_what_is_typed_counts_first_then_variables_then_the_file(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], file: str | None, defaults: dict[str, str]
) -> None:
    if file is not None:
        (tmp_path / "asya.toml").write_text(file)
    assert read_defaults(arguments, environment, tmp_path) == defaults


def test_the_file_counts_for_the_folders_below_it(tmp_path: Path) -> None:
    (tmp_path / "asya.toml").write_text('state = ".asya/shop"')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert read_defaults([], {}, below) == {"state": "../../.asya/shop"}


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("state = ", "cannot be read"),
        ('mesh = "x"', "mesh: not a default"),
        ("state = 3", "state: not a default"),
        ('state = "x"\nnamespace = "y"', "asya.toml selects two meshes: by state and by namespace"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, file: str, problem: str) -> None:
    (tmp_path / "asya.toml").write_text(file)
    with pytest.raises(MeshError, match=problem):
        read_defaults([], {}, tmp_path)


def test_every_command_but_the_demo_takes_the_defaults() -> None:
    found = default_map(typer.main.get_command(app), {"state": "x"})
    assert found["status"] == found["local"]["up"] == found["dlq"]["reports"]["replay"] == {"state": "x"}
    assert "demo" not in found


@pytest.mark.parametrize("arguments", [["schema"], ["status", "--help"], ["dlq", "list", "--help"]])
def test_help_and_commands_without_a_mesh_need_no_right_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    (tmp_path / "asya.toml").write_text("wrong = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["asya", *arguments])
    assert CliRunner().invoke(app, arguments).exit_code == 0


def test_a_command_uses_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asya.toml").write_text(PRODUCTION + 'profile = "admin"\n')
    monkeypatch.chdir(tmp_path)
    for name in OPTIONS:
        monkeypatch.delenv(f"ASYA_{name.upper()}", raising=False)
    monkeypatch.setattr("sys.argv", ["asya", "status", "a"])
    used: list[MeshOptions] = []

    def client(selected: MeshOptions) -> None:
        used.append(selected)
        raise MeshError("enough")

    monkeypatch.setattr(MeshOptions, "client", client)
    CliRunner().invoke(app, ["status", "a"])
    assert used == [MeshOptions(Path(".asya"), "shop-prod", "eu-north-1", "admin")]
