"""`asya deploy`, `asya diff` and `asya destroy` pass their options on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
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


def test_the_tool_itself_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []
    monkeypatch.setattr(Choice, "synthesized", lambda self: SimpleNamespace(run=calls.append))
    CliRunner().invoke(app, ["cdk", "--", "import", "Asya-shop-state", "--force"], catch_exceptions=False)
    assert calls == [["import", "Asya-shop-state", "--force", "--app", str(Path("cdk.out").resolve())]]


def test_diff_changes_nothing_and_tells_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []
    codes = [0, 1]

    def run(arguments: Sequence[str]) -> int:
        calls.append(arguments)
        return codes.pop(0)

    monkeypatch.setattr(Choice, "synthesized", lambda self: SimpleNamespace(run=run))
    monkeypatch.setattr(Choice, "check_credentials", lambda self: None)
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
    monkeypatch.setattr(Choice, "synthesized", lambda self: pytest.fail("the templates are made"))
    with pytest.raises(CommandError, match="there are no AWS credentials") as caught:
        CliRunner().invoke(app, ["diff", "--mesh", str(mesh)], catch_exceptions=False)
    assert caught.value.code == ExitCode.UNREACHABLE
