"""`asya deploy`, `asya diff` and `asya destroy` pass their options on."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from asya_cli import deployment
from asya_cli.deployment import Choice
from asya_cli.errors import CommandError, ExitCode
from asya_cli.main import app
from asya_infra.deployment.commands import Deployment


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Choice, Callable[[Deployment], None], dict[str, object]]]:
    made: list[tuple[Choice, Callable[[Deployment], None], dict[str, object]]] = []

    def act(choice: Choice, action: Callable[[Deployment], None], **options: object) -> None:
        made.append((choice, action, options))

    monkeypatch.setattr(Choice, "act", act)
    return made


def test_deploy_and_destroy_name_their_actions(
    acts: list[tuple[Choice, Callable[[Deployment], None], dict[str, object]]],
) -> None:
    options = ["--mesh", "shop/mesh.yaml", "--stage", "dev", "-c", "relist=1", "--region", "eu-north-1", "--yes"]
    CliRunner().invoke(app, ["deploy", *options, "--no-wait", "--drop-messages", "bill"], catch_exceptions=False)
    CliRunner().invoke(app, ["destroy", *options], catch_exceptions=False)
    (first, deploy, given), (second, destroy, kept) = acts
    assert first == second
    assert first == Choice(Path("shop/mesh.yaml"), "dev", ("relist=1",), Path("cdk.out"), "eu-north-1", None)
    assert (deploy, given) == (
        Deployment.deploy,
        {"yes": True, "waits": False, "dropped": ("bill",), "bootstrap": False},
    )
    assert (destroy, kept) == (Deployment.destroy, {"yes": True, "waits": True})


def with_tool(monkeypatch: pytest.MonkeyPatch, run: Callable[[Sequence[str]], int | None]) -> None:
    """Replace the CDK's tool. The mesh is synthesized."""
    monkeypatch.setattr(deployment, "Cdk", SimpleNamespace(find=lambda profile, region: SimpleNamespace(run=run)))
    monkeypatch.setattr(Choice, "synthesize", lambda self: None)


def test_the_tool_itself_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []
    with_tool(monkeypatch, calls.append)
    CliRunner().invoke(app, ["cdk", "--", "import", "Asya-shop-state", "--force"], catch_exceptions=False)
    assert calls == [["import", "Asya-shop-state", "--force", "--app", str(Path("cdk.out").resolve())]]


def test_diff_changes_nothing_and_tells_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []
    codes = [0, 1]

    def run(arguments: Sequence[str]) -> int:
        calls.append(arguments)
        return codes.pop(0)

    with_tool(monkeypatch, run)
    monkeypatch.setattr(Choice, "check_credentials", lambda self: None)
    monkeypatch.setattr(Choice, "tell_costs", lambda self: None)
    CliRunner().invoke(app, ["diff"], catch_exceptions=False)
    assert calls == [["diff", "--app", str(Path("cdk.out").resolve())]]
    with pytest.raises(CommandError, match="exit code 1"):
        CliRunner().invoke(app, ["diff"], catch_exceptions=False)


def test_diff_without_credentials_says_so_and_makes_no_templates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mesh = tmp_path / "mesh.yaml"
    mesh.touch()
    monkeypatch.setattr(deployment, "session_in", lambda region, profile: SimpleNamespace(get_credentials=lambda: None))
    monkeypatch.setattr(Choice, "synthesize", lambda self: pytest.fail("the templates are made"))
    with pytest.raises(CommandError, match="there are no AWS credentials") as caught:
        CliRunner().invoke(app, ["diff", "--mesh", str(mesh)], catch_exceptions=False)
    assert caught.value.code == ExitCode.UNREACHABLE


def test_diff_says_what_a_deployment_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The deployed stack has a key, and the synthesized one a dashboard too."""
    key, board = {"Type": "AWS::KMS::Key"}, {"Type": "AWS::CloudWatch::Dashboard"}
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "state.json"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Asya-shop-state": artifact}}))
    (tmp_path / "state.json").write_text(json.dumps({"Resources": {"key": key, "board": board}}))

    def get_template(*, StackName: str, TemplateStage: str) -> dict[str, Any]:  # noqa: N803
        if StackName != "Asya-shop-state":
            answer: Any = {"Error": {"Code": "ValidationError", "Message": f"{StackName} does not exist"}}
            raise ClientError(answer, TemplateStage)
        return {"TemplateBody": {"Resources": {"key": key}}}

    client = SimpleNamespace(get_template=get_template)
    session = SimpleNamespace(get_credentials=lambda: "some", client=lambda _: client)
    monkeypatch.setattr(deployment, "session_in", lambda region, profile: session)
    monkeypatch.setattr(Choice, "run", lambda self, arguments: None)
    monkeypatch.setattr(deployment, "check_exists", lambda mesh: None)
    outcome = CliRunner().invoke(app, ["diff", "--output", str(tmp_path)], catch_exceptions=False)
    assert outcome.stdout == "costs +$3.00 a month\n"
