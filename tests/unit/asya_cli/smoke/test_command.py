"""`asya smoke`: the order of its steps and their lines."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from asya_cli.errors import CommandError
from asya_cli.options import MeshOptions
from asya_cli.smoke import command
from asya_cli.smoke.command import run, smoke
from asya_cli.smoke.steps import Step


class Steps:
    """Steps with fixed results."""

    mesh = SimpleNamespace(connection=SimpleNamespace(endpoint_url="http://127.0.0.1:1"))

    def __init__(self, *failing: str) -> None:
        self.failing = failing

    def _step(self, name: str) -> Step:
        return Step(name, "failed" if name in self.failing else "ok", 1.0, "detail", "")

    def gateway(self) -> Step:
        return self._step("gateway")

    def light(self) -> Step:
        return self._step("light")

    def index(self) -> Step:
        return self._step("index")

    def tool(self, name: str, _arguments: bytes) -> Step:
        return self._step(name)


def names(steps: Any, tool: str | None = None) -> list[str]:
    return [step.name for step in run(steps, tool, b"{}", alarms=False)]


def test_the_order_of_the_steps() -> None:
    assert names(Steps()) == ["gateway", "light", "index"]
    assert names(Steps(), "analyse") == ["gateway", "light", "index", "analyse"]


def test_a_local_cloud_has_no_alarm_topic() -> None:
    """No call of a test on a local cloud may reach AWS."""
    steps: Any = Steps()
    *_, alarms = run(steps, None, b"{}", alarms=True)
    assert (alarms.name, alarms.state) == ("alarms", "skipped")


def test_without_the_gateway_nothing_is_sent() -> None:
    assert names(Steps("gateway")) == ["gateway"]


def test_a_failed_envelope_does_not_end_the_command() -> None:
    assert names(Steps("light")) == ["gateway", "light", "index"]


def test_a_stage_selects_the_mesh_of_the_file_on_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = tmp_path / "mesh.yaml"
    mesh.write_text(
        "namespace: shop\ncode: .\nactors:\n  bill: {handler: bills.pay}\n"
        "stages:\n  dev: {}\n  prod: {account: '123456789012', region: eu-central-1}\n"
    )
    (tmp_path / "bills.py").write_text("def pay(payload):\n    return payload\n")
    connected: list[tuple[str | None, str | None]] = []

    def connect(selected: MeshOptions) -> Any:
        connected.append((selected.namespace, selected.region))
        raise CommandError("no such mesh")

    monkeypatch.setattr(MeshOptions, "client", connect)
    selections: tuple[dict[str, Any], ...] = (
        {"mesh": mesh, "stage": "prod"},
        {"mesh": mesh, "stage": "prod", "region": "us-east-1"},
        {"mesh": mesh, "stage": "dev"},
        {"mesh": mesh},
        {},
    )
    for options in selections:
        with pytest.raises(CommandError, match="no such mesh"):
            smoke(**options)
    assert connected == [
        ("shop-prod", "eu-central-1"),
        ("shop-prod", "us-east-1"),
        ("shop-dev", None),
        ("shop", None),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("application", "is_pinned"),
    [("release: emr-spark-8.1.0", True), ("release: emr-7.9.0", False), ("id: 00abc, max_vcpu: 16", False)],
)
def test_the_mesh_file_tells_whether_a_python_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, application: str, is_pinned: bool
) -> None:
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\njobs: .\nactors:\n  crunch: {spark: {job: heavy.crunch}}\n"
        f"spark: {{application: {{{application}}}}}\n"
    )
    (tmp_path / "heavy.py").write_text("def crunch(spark, payload):\n    return payload\n")
    steps: list[Any] = []

    def take(smoke: Any, *_: Any, **__: Any) -> tuple[Step, ...]:
        steps.append(smoke)
        return ()

    monkeypatch.setattr(MeshOptions, "client", lambda _: None)
    monkeypatch.setattr(command, "run", take)
    smoke(mesh=tmp_path / "mesh.yaml")
    smoke(namespace="shop")
    assert [each.is_python_pinned for each in steps] == [is_pinned, False]


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(CommandError, match="--arguments needs --tool"):
        smoke(arguments=Path("arguments.json"))
    with pytest.raises(CommandError, match="--namespace excludes"):
        smoke(stage="prod", namespace="shop")


def test_a_failed_step_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(MeshOptions, "client", lambda _: None)
    failed = Step("light", "failed", 1.0, "it failed", "look here")
    monkeypatch.setattr(command, "run", lambda *_, **__: iter([failed, Step("index", "ok", 1.0, "fine")]))
    with pytest.raises(typer.Exit) as caught:
        smoke()
    assert caught.value.exit_code == 1
    assert [text.strip() for text in capsys.readouterr().out.splitlines()] == [
        "failed  light         1.0 s  it failed",
        "look here",
        "ok      index         1.0 s  fine",
    ]
