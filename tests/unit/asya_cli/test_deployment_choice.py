"""What the options of `asya deploy` and `asya destroy` choose, and what a failure tells."""

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import NoCredentialsError

from asya_cli import deployment
from asya_cli.deployment import Choice
from asya_cli.errors import CommandError, ExitCode
from asya_infra.assemblies import Synthesis, Synthesized
from asya_infra.assembly import Findings
from asya_infra.deployment.commands import Deployment, DeploymentError

MESH = "namespace: shop\ncode: handlers\nactors:\n  bill: {handler: shop.bill}\n"


@dataclass
class Cdk:
    """Records its calls."""

    profile: str | None = None
    region: str | None = None
    code: int = 0
    runs: list[list[str]] = field(default_factory=list)

    def run(self, arguments: Sequence[str]) -> int:
        self.runs.append(list(arguments))
        return self.code


@dataclass
class Shell:
    """A folder with a mesh file, and the command without the CDK."""

    folder: Path
    cdk: Cdk = field(default_factory=Cdk)
    contexts: list[dict[str, str]] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)

    def synthesize(self, synthesis: Synthesis) -> Synthesized:
        """Write an assembly instead of synthesizing."""
        self.contexts.append({"mesh": str(synthesis.mesh.path), **synthesis.context})
        folder = self.folder / "assembly"
        folder.mkdir(exist_ok=True)
        artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "t.json"}}
        (folder / "manifest.json").write_text(json.dumps({"artifacts": {"Asya-shop-state": artifact}}))
        (folder / "t.json").write_text("{}")
        return Synthesized(folder, Findings(("beyond the default quota of an account: queues",)))

    def act(self, *, yes: bool = False, waits: bool = True, **options: object) -> Deployment:
        self.choice(**options).act(self.deployments.append, yes=yes, waits=waits, dropped=("bill",))
        return self.deployments[-1]

    def choice(self, **options: object) -> Choice:
        given = {"mesh": self.folder / "mesh.yaml", "stage": "", "context": (), "region": None, "profile": None}
        return Choice(**{"output": self.folder / "cdk.out", **given, **options})  # type: ignore[arg-type]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text("def bill(payload): ...\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    made = Shell(tmp_path)
    monkeypatch.setattr(deployment, "Cdk", SimpleNamespace(find=lambda profile, region: made.cdk))

    def synthesize(synthesis: Synthesis) -> Synthesized:
        return made.synthesize(synthesis)

    monkeypatch.setattr(Synthesis, "run", synthesize)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    at_terminal(monkeypatch, is_terminal=True)
    return made


def at_terminal(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: is_terminal))


def test_the_mesh_is_synthesized_with_its_stage_and_options(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    made = shell.act(stage="test", context=("relist=1",), waits=False)
    assert shell.contexts == [{"mesh": str(shell.folder / "mesh.yaml"), "stage": "test", "relist": "1"}]
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("note: ")
    assert told[-1] == "beyond the default quota of an account: queues"
    assert made.assembly.namespace == "shop"
    assert (made.asks, made.waits, made.dropped) == (True, False, ("bill",))
    assert made.session.region_name == "eu-central-1"
    assert shell.act(region="eu-north-1").session.region_name == "eu-north-1"


def test_without_a_terminal_nothing_is_asked_and_that_is_said(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_terminal(monkeypatch, is_terminal=False)
    assert not shell.act().asks
    said = "asya: no terminal, so nothing is asked\n"
    assert capsys.readouterr().out == said
    assert not shell.act(yes=True).asks
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("pair", "advice"),
    [
        ("relist", "Write KEY=VALUE"),
        ("aws:cdk:bundling-stacks=[]", "Write KEY=VALUE"),
        ("stage=dev", "Give --stage dev."),
        ("mesh=other.yaml", "Give --mesh other.yaml."),
    ],
)
def test_a_wrong_option_of_the_stacks_is_told(shell: Shell, pair: str, advice: str) -> None:
    with pytest.raises(CommandError) as caught:
        shell.act(context=(pair,))
    assert advice in caught.value.advice
    assert shell.contexts == []


def test_a_missing_mesh_file_is_named(shell: Shell) -> None:
    with pytest.raises(CommandError, match=r"there is no mesh file other\.yaml"):
        shell.act(mesh=Path("other.yaml"))
    assert shell.deployments == []


def test_a_refusal_is_told_without_a_traceback(shell: Shell) -> None:
    def refuse(_: Deployment) -> None:
        raise DeploymentError("the queue has messages")

    with pytest.raises(CommandError, match="the queue has messages"):
        shell.choice().act(refuse, yes=True, waits=True)


def test_without_credentials_nothing_is_synthesized(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "session_in", lambda region, profile: SimpleNamespace(get_credentials=lambda: None))
    with pytest.raises(CommandError, match="there are no AWS credentials") as caught:
        shell.act()
    assert caught.value.code == ExitCode.UNREACHABLE
    assert shell.contexts == []


def test_missing_credentials_are_named(shell: Shell) -> None:
    def ask(_: Deployment) -> None:
        raise NoCredentialsError

    with pytest.raises(CommandError, match="a call of AWS failed: Unable to locate credentials") as caught:
        shell.choice().act(ask, yes=True, waits=True)
    assert caught.value.code == ExitCode.UNREACHABLE


def test_an_unknown_profile_is_told(shell: Shell) -> None:
    with pytest.raises(CommandError, match="nobody"):
        shell.act(profile="nobody")


def test_an_account_is_prepared_on_request_and_a_failure_ends_the_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = SimpleNamespace(get_caller_identity=lambda: {"Account": "123456789012"})
    session = SimpleNamespace(client=lambda _: identity, region_name="eu-central-1", get_credentials=lambda: "known")
    monkeypatch.setattr(deployment, "session_in", lambda region, profile: session)
    shell.choice().act(shell.deployments.append, yes=True, waits=True, bootstrap=True)
    assert shell.cdk.runs == [["bootstrap", "aws://123456789012/eu-central-1", "--app", ""]]
    shell.cdk.code = 1
    with pytest.raises(CommandError, match="`cdk bootstrap` failed with exit code 1"):
        shell.choice().act(shell.deployments.append, yes=True, waits=True, bootstrap=True)
    assert len(shell.deployments) == 1


def test_findings_have_the_line_of_the_mesh_file(shell: Shell) -> None:
    assert shell.act().locate(("actors", "bill"), "breaks") == f"{shell.folder / 'mesh.yaml'}:4: actors.bill: breaks"


@pytest.mark.parametrize(("answer", "is_yes"), [("y", True), ("Yes ", True), ("", False), ("n", False)])
def test_only_a_yes_confirms(shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: str, is_yes: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert shell.act().confirm("Deploy?") == is_yes


def test_the_end_of_the_input_confirms_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert not shell.act(yes=True).confirm("Deploy?")
