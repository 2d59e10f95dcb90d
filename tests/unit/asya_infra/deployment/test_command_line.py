"""The command lines of `asya_infra.deploy` and `asya_infra.destroy`."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import NoCredentialsError

from asya_infra import deploy, destroy
from asya_infra.deployment import command_line
from asya_infra.deployment.commands import Deployment, DeploymentError


class Shell:
    """Runs the commands without `cdk`; records its calls and the deployment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *, is_terminal: bool) -> None:
        self.calls: list[list[str]] = []
        self.code = 0
        self.deployments: list[Deployment] = []
        (folder / "cdk.out").mkdir()
        artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t.json"}}
        (folder / "cdk.out" / "manifest.json").write_text(json.dumps({"artifacts": {"Asya-shop-state": artifact}}))
        (folder / "cdk.out" / "t.json").write_text("{}")
        monkeypatch.setattr(command_line, "REPOSITORY", folder)
        monkeypatch.setattr(command_line, "_cdk", self._cdk)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: is_terminal))
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        self.monkeypatch = monkeypatch

    def _cdk(self, arguments: Sequence[str]) -> int:
        self.calls.append(list(arguments))
        return self.code

    def run(self, *arguments: str) -> Deployment:
        command_line.run("asya_infra.deploy", arguments, self.deployments.append)
        return self.deployments[-1]


def test_it_synthesizes_with_the_options_of_the_mesh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=True)
    made = shell.run("-c", "mesh=/shop/mesh.yaml", "-c", "stage=test", "--drop-messages", "bill", "--no-wait")
    context = ["--context", "mesh=/shop/mesh.yaml", "--context", "stage=test"]
    assert shell.calls == [["synth", "--quiet", "--output", str(tmp_path / "cdk.out"), *context]]
    assert made.assembly.namespace == "shop"
    assert (made.asks, made.waits, made.dropped) == (True, False, ("bill",))
    assert made.session.region_name == "eu-central-1"


def test_without_a_terminal_nothing_is_asked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=False)
    assert not shell.run().asks
    assert (
        capsys.readouterr().out
        == "asya: no terminal: changes of permissions and types are deployed without a question\n"
    )
    assert not shell.run("--yes").asks
    assert capsys.readouterr().out == ""


def test_a_mesh_file_with_mistakes_ends_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=False)
    shell.code = 1
    with pytest.raises(SystemExit) as end:
        shell.run()
    assert end.value.code == 1
    assert shell.deployments == []


def test_a_refusal_is_printed_without_a_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Shell(monkeypatch, tmp_path, is_terminal=False)

    def refuse(_: Deployment) -> None:
        raise DeploymentError("the queue has messages")

    with pytest.raises(SystemExit) as end:
        command_line.run("asya_infra.deploy", [], refuse)
    assert end.value.code == "the queue has messages"


def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Shell(monkeypatch, tmp_path, is_terminal=False)

    def ask(_: Deployment) -> None:
        raise NoCredentialsError

    with pytest.raises(SystemExit) as end:
        command_line.run("asya_infra.deploy", [], ask)
    assert end.value.code == "a call of AWS failed: Unable to locate credentials"


def test_findings_have_the_line_of_the_mesh_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=False)
    (tmp_path / "mesh.yaml").write_text("namespace: shop\nactors:\n  x-y: {}\n")
    assert shell.run().locate(("actors", "bill"), "breaks") == "actors.bill: breaks"  # the mesh file is invalid
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text("def bill(payload): ...\n")
    text = "namespace: shop\ncode: handlers\nactors:\n  bill: {handler: shop.bill}\n"
    (tmp_path / "other.yaml").write_text(text)
    (tmp_path / "cdk.json").write_text('{"context": {"mesh": "other.yaml"}}')
    line = f"{tmp_path / 'other.yaml'}:4: actors.bill: breaks"
    assert shell.run().locate(("actors", "bill"), "breaks") == line
    (tmp_path / "cdk.json").unlink()
    assert shell.run("-c", "mesh=other.yaml").locate(("actors", "bill"), "breaks") == line


@pytest.mark.parametrize(("answer", "is_yes"), [("y", True), ("Yes ", True), ("", False), ("n", False)])
def test_only_a_yes_confirms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, is_yes: bool) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=True)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert shell.run().confirm("Deploy?") == is_yes


def test_the_end_of_the_input_confirms_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shell = Shell(monkeypatch, tmp_path, is_terminal=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert not shell.run("--yes").confirm("Deploy?")


def test_the_modules_name_their_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    for module in (deploy, destroy):
        monkeypatch.setattr(module, "run", lambda name, _, action: calls.extend((name, action)))
        module.main()
    assert calls == ["asya_infra.deploy", Deployment.deploy, "asya_infra.destroy", Deployment.destroy]
