"""`asya doctor`: its lines and its exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

import asya_infra.preflight.read_account as aws
from asya_cli.doctor import doctor
from asya_cli.errors import CommandError
from asya_infra.preflight.account import Account, Concurrency, IamUsage, Identity, Unknown

IDENTITY = Identity("123456789012", "arn:aws:iam::123456789012:role/deploy", "eu-central-1")


@pytest.fixture
def synthesized(tmp_path: Path) -> Path:
    """The output of `cdk synth` for a mesh with 16 vCPU."""
    application = {"Type": "AWS::EMRServerless::Application", "Properties": {"MaximumCapacity": {"Cpu": "16 vCPU"}}}
    (tmp_path / "state.json").write_text(json.dumps({"Resources": {"Application": application}}))
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "state.json"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {"Asya-shop-state": stack}}))
    return tmp_path


def account(spark_vcpu: int | Unknown) -> Account:
    return Account(
        identity=IDENTITY,
        bootstrap_version=30,
        concurrency=Concurrency(1000, 1000),
        spark_vcpu=spark_vcpu,
        iam=IamUsage(1, 1000, 1, 1500),
        stacks={},
    )


@pytest.fixture
def aws_account(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the account answers; a test may replace it."""
    facts: dict[str, Any] = {"identity": IDENTITY, "account": account(16)}
    monkeypatch.setattr(aws, "read_identity", lambda _: facts["identity"])
    monkeypatch.setattr(aws, "read_account", lambda *_: facts["account"])
    return facts


def test_an_account_that_holds_the_mesh(
    synthesized: Path, aws_account: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    doctor(synthesized=synthesized, region="eu-central-1")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok       credentials          arn:aws:iam::123456789012:role/deploy")
    assert all(text.startswith("ok ") for text in lines)


def test_a_problem_is_exit_code_1(
    synthesized: Path, aws_account: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    aws_account["account"] = account(8)
    with pytest.raises(typer.Exit) as caught:
        doctor(synthesized=synthesized, region="eu-central-1")
    assert caught.value.exit_code == 1
    output = capsys.readouterr()
    assert "problem  EMR Serverless vCPU" in output.out
    assert output.err == "1 problem: the deployment would fail\n"


def test_a_quota_that_may_not_be_read_is_no_problem(
    synthesized: Path, aws_account: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    aws_account["account"] = account(Unknown("AccessDenied", "servicequotas:GetServiceQuota"))
    doctor(synthesized=synthesized, region="eu-central-1")
    assert "warning  EMR Serverless vCPU" in capsys.readouterr().out


def test_without_credentials_nothing_else_is_checked(
    synthesized: Path, aws_account: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    aws_account["identity"] = Unknown("Unable to locate credentials", "sts:GetCallerIdentity")
    with pytest.raises(typer.Exit):
        doctor(synthesized=synthesized, region="eu-central-1")
    assert [text.split()[:2] for text in capsys.readouterr().out.splitlines()] == [["problem", "credentials"]]


def test_a_folder_without_a_mesh_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not the output of `cdk synth`"):
        doctor(synthesized=tmp_path, region="eu-central-1")


@pytest.mark.parametrize(
    ("stage", "option", "configured", "expected"),
    [
        ("eu-central-1", "eu-west-1", "us-west-2", "eu-west-1"),
        ("eu-central-1", None, "us-west-2", "eu-central-1"),
        (None, None, "us-west-2", "us-west-2"),
        (None, None, None, "us-east-1"),
    ],
)
def test_the_region_is_the_one_of_the_deployment(
    synthesized: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str | None,
    option: str | None,
    configured: str | None,
    expected: str,
) -> None:
    for name in ("AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere/config")
    if configured:
        monkeypatch.setenv("AWS_DEFAULT_REGION", configured)
    else:
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    if stage:
        manifest = json.loads((synthesized / "manifest.json").read_text())
        manifest["artifacts"]["Asya-shop-state"]["environment"] = f"aws://123456789012/{stage}"
        (synthesized / "manifest.json").write_text(json.dumps(manifest))
    regions: list[str] = []

    def identify(session: Any) -> Unknown:
        regions.append(session.region_name)
        return Unknown("stop here", "")

    monkeypatch.setattr(aws, "read_identity", identify)
    with pytest.raises(typer.Exit):
        doctor(synthesized=synthesized, region=option)
    assert regions == [expected]


def test_an_invalid_mesh_file_is_shown_with_its_line(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh.yaml"
    mesh.write_text("namespace: shop\nactors:\n  bill: {handler: bills.pay, timeot: 3s}\n")
    with pytest.raises(CommandError, match=r"mesh\.yaml:3: actors\.bill\.timeot: unknown key; did you mean 'timeout'"):
        doctor(mesh)
