"""`asya contracts`: against a revision, against a folder, and against what is deployed."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from botocore.exceptions import ClientError, NoCredentialsError

from asya_cli.contracts import earlier
from asya_cli.contracts.command import contracts
from asya_cli.errors import CommandError
from asya_infra.contracts.mesh_contracts import (
    ACTOR,
    TOOLS,
    ActorContract,
    MeshContracts,
    ToolContract,
    actor_records,
    tools_record,
)

MESH = """
namespace: shop
code: handlers
actors:
  check: {handler: shop.check}
  bill: {handler: shop.bill}
tools:
  order: {input_schema: shop.Order, route: [check, bill]}
"""
CODE = """
from dataclasses import dataclass
from decimal import Decimal

@dataclass
class Order:
    id: str
    total: Decimal
    MORE

def check(order: Order) -> Order: ...
def bill(order: Order) -> dict[str, str]: ...
"""
BEFORE, DEFAULT = CODE.replace("MORE", ""), CODE.replace("MORE", "note: str = ''")
NOTE = CODE.replace("MORE", "note: str")
DIFFERENT = CODE.replace("MORE", "").replace("total: Decimal", "total: float")


class Repository:
    """A git repository with a mesh in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mesh = folder, folder / "shop" / "mesh.yaml"
        self.git("init", "--quiet", "--initial-branch", "main")
        self.write(BEFORE)
        (folder / ".gitattributes").write_text("shop export-ignore\n")
        self.commit()

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def write(self, code: str, mesh: str = MESH) -> None:
        (self.folder / "shop" / "handlers").mkdir(parents=True, exist_ok=True)
        (self.folder / "shop" / "handlers" / "shop.py").write_text(code)
        self.mesh.write_text(mesh)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A mesh")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "repository").mkdir()
    return Repository(tmp_path / "repository")


def code_of(repository: Repository, against: str | None = "main") -> int:
    try:
        contracts(repository.mesh, against=against)
    except typer.Exit as end:
        return int(end.exit_code)
    return 0


@pytest.mark.slow
def test_a_breaking_change_against_a_revision_is_exit_code_1(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write(NOTE)
    (repository.folder / "staged").write_text("")
    repository.git("add", "staged")
    status = repository.git("status", "--short")

    assert code_of(repository) == 1
    output = capsys.readouterr()
    default = "give it a default, or deploy in two steps: first what gives it, then what needs it"
    assert output.out.splitlines() == [
        f"{repository.mesh}:5: actors.check: 'check' needs note: str; envelopes in flight may have none; {default}",
        f"{repository.mesh}:6: actors.bill: 'bill' needs note: str; envelopes in flight may have none; {default}",
        f"{repository.mesh}:8: tools.order.input_schema: the tool 'order' needs note: str; callers may send none; "
        "give it a default",
    ]
    assert output.err == "3 changes break envelopes in flight or callers; see docs/how-to/change-a-mesh.md\n"
    assert repository.git("status", "--short") == status


def test_a_harmless_change_is_exit_code_0(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.write(DEFAULT)
    repository.commit()
    assert code_of(repository, "main~1") == 0
    expected = "nothing breaks: 2 actors with types and 1 tool compared with main~1 of mesh.yaml\n"
    assert capsys.readouterr().out == expected


@pytest.mark.slow
def test_a_folder_or_a_file_may_have_the_earlier_mesh(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("clone", "--quiet", str(repository.folder), str(tmp_path / "clone"))
    repository.write(DIFFERENT)
    assert code_of(repository, str(tmp_path / "clone" / "shop")) == 1
    assert code_of(repository, str(tmp_path / "clone" / "shop" / "mesh.yaml")) == 1
    assert "'check' needs total: float; envelopes in flight may have Decimal" in capsys.readouterr().out


def test_a_revision_without_the_mesh_has_nothing_to_break(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.git("rm", "--quiet", "-r", "--cached", "shop")
    repository.git("commit", "--quiet", "--message", "No mesh")
    assert code_of(repository, "HEAD") == 0
    assert capsys.readouterr().err == f"HEAD has no {repository.mesh}, so nothing can break\n"


@pytest.mark.slow
def test_earlier_code_that_cannot_be_imported_is_a_note(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    text = MESH.replace("input_schema: shop.Order, ", "")
    repository.write(f"import nowhere\n{BEFORE}", text)
    repository.commit()
    repository.write(NOTE, text)
    assert code_of(repository) == 0
    error = capsys.readouterr().err
    assert "note: main: the types of 'bill' are not known, so they are not compared: ModuleNotFoundError" in error


def test_an_earlier_mesh_file_with_mistakes_names_the_revision(repository: Repository) -> None:
    repository.write(BEFORE, MESH.replace("actors:", "actor:"))
    repository.commit()
    repository.write(BEFORE)
    with pytest.raises(CommandError, match="the mesh file of main is invalid") as caught:
        code_of(repository)
    assert caught.value.advice.startswith("main:shop/mesh.yaml:")


def test_a_mesh_whose_types_conflict_is_an_error(repository: Repository) -> None:
    repository.write(BEFORE.replace("-> Order", "-> int"))
    with pytest.raises(CommandError, match=r"mesh.yaml:8: .*'bill' needs Order; 'check' gives int"):
        code_of(repository)


@pytest.mark.parametrize("name", ["nowhere", "--all", "main:shop"])
def test_a_name_that_is_no_revision_is_an_error(repository: Repository, name: str) -> None:
    with pytest.raises(CommandError, match=f"'{name}' is neither a folder with mesh.yaml nor a revision"):
        code_of(repository, name)


def test_a_mesh_without_a_repository_needs_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(CommandError, match="is in no git repository"):
        earlier.earlier_contracts(tmp_path / "mesh.yaml", "", "main")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CommandError, match="git is not installed"):
        earlier.earlier_contracts(tmp_path / "mesh.yaml", "", "main")


class Account:
    """A session in an account, and the templates that are deployed there."""

    region_name = "eu-central-1"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, templates: dict[str, Any] | Exception) -> None:
        self.stacks: list[str] = []
        self._templates = templates
        monkeypatch.setattr(earlier, "session_in", lambda *_: self)
        monkeypatch.setattr(earlier, "deployed_templates", self._read)

    def client(self, service: str) -> Any:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "210987654321"}

    def _read(self, session: Any, stacks: list[str]) -> dict[str, Any]:
        self.stacks = stacks
        if isinstance(self._templates, Exception):
            raise self._templates
        return self._templates


def templates(field: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    deployed = MeshContracts({"bill": ActorContract(schema)}, {"order": ToolContract(schema, ("bill",))})
    gateway = {TOOLS: tools_record(deployed)}
    function = {ACTOR: actor_records(deployed, ["bill"])["bill"]}
    return {
        "Asya-shop-gateway": {"Resources": {"Api": {"Metadata": gateway}}},
        "Asya-shop-functions-2": {"Resources": {"Function": {"Metadata": function}}},
    }


def test_without_a_revision_the_deployed_types_count(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account(monkeypatch, templates("id"))
    assert code_of(repository, None) == 1
    assert "'bill' needs total: Decimal; envelopes in flight may have none" in capsys.readouterr().out
    functions = [f"Asya-shop-functions-{shard}" for shard in range(8)]
    assert account.stacks == ["Asya-shop-gateway", *functions]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deployed", "note"),
    [
        ({}, "is not deployed, so nothing can break"),
        ({"Asya-shop-gateway": {"Resources": {}}}, "does not record its types yet, so nothing is compared"),
    ],
)
def test_what_is_not_recorded_breaks_nothing(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    deployed: dict[str, Any],
    note: str,
) -> None:
    Account(monkeypatch, deployed)
    assert code_of(repository, None) == 0
    assert f"the mesh shop in eu-central-1 {note}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [NoCredentialsError(), ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "GetTemplate")]
)
def test_templates_that_cannot_be_read_are_an_error(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    Account(monkeypatch, error)
    with pytest.raises(CommandError, match="cannot read the templates of the mesh shop in eu-central-1"):
        code_of(repository, None)


def test_credentials_of_another_account_are_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    Account(monkeypatch, {})
    repository.write(BEFORE, f'{MESH}account: "123456789012"\nregion: eu-central-1\n')
    with pytest.raises(
        CommandError, match="belongs to the account 123456789012, but the credentials are of 210987654321"
    ):
        code_of(repository, None)
