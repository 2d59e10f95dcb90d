"""A mesh that the command cannot reach: the answer says in two lines why, and what to type."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya_cli.errors import ExitCode
from tests.doubles.command_line import assert_two_lines, asya

FAILED, UNREACHABLE = ExitCode.COMMAND_FAILED, ExitCode.UNREACHABLE


def test_without_a_mesh_the_command_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_two_lines(asya("list"), UNREACHABLE, "no mesh is running here", "`asya dev`")
    assert_two_lines(asya("local", "env"), UNREACHABLE, "no local cloud runs in .asya", "`asya local up`")


@pytest.fixture
def silent_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder that names a gateway and services that do not answer."""
    monkeypatch.chdir(tmp_path)
    address = "http://127.0.0.1:1"
    names = ("namespace", "region", "access_key", "secret_key", "data_bucket", "data_prefix", "results_bucket")
    local = dict.fromkeys((*names, "results_prefix"), "us-east-1")
    local |= {"gateway_url": address, "endpoint_url": address, "emr_endpoint_url": address}
    (tmp_path / ".asya").mkdir()
    (tmp_path / ".asya" / "local.json").write_text(json.dumps(local))


@pytest.mark.usefixtures("silent_mesh")
def test_a_mesh_that_does_not_answer_is_unreachable() -> None:
    for command in (("list",), ("status", "a"), ("call", "order")):
        assert_two_lines(asya(*command), UNREACHABLE, "did not answer", "`asya local status`")
    assert_two_lines(asya("send", "-", "--actor", "a", text="{}"), UNREACHABLE, "cannot send", "`asya local status`")


@pytest.mark.usefixtures("silent_mesh")
@pytest.mark.parametrize(
    "command",
    [
        "dlq list",
        "dlq show a",
        "dlq redrive bill",
        "dlq reports replay",
        "dlq reports replay --dry-run",
        "job list",
        "job show asya.us-east-1.count.0000000001",
        "job drain count",
        "logs a",
        "data ls",
        "report",
    ],
)
def test_services_that_do_not_answer_are_unreachable(command: str) -> None:
    assert_two_lines(asya(*command.split()), UNREACHABLE, "Could not connect", "`asya local status`")


@pytest.mark.parametrize(
    ("content", "problem", "advice"),
    [
        ('state = "a"\nnamespace = "b"', "asya.toml selects two meshes", "Remove one of them"),
        ('stat = "a"', "stat: not a default of the command", "state, namespace, region, profile"),
        ("state =", "asya.toml cannot be read", 'namespace = "shop-prod"'),
    ],
)
def test_a_mistake_in_the_defaults_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, problem: str, advice: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asya.toml").write_text(content)
    assert_two_lines(asya("list"), FAILED, problem, advice)


@pytest.mark.parametrize(
    ("code", "message", "problem", "advice"),
    [
        ("ExpiredToken", "The security token is expired", "your AWS credentials have expired", "`aws sso login`"),
        (
            "ValidationError",
            "Stack with id Asya-shop-gateway does not exist",
            "does not exist",
            "--namespace shop-prod",
        ),
        ("AccessDenied", "not authorized", "not authorized", "your AWS credentials"),
    ],
)
def test_a_mesh_on_aws_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch, code: str, message: str, problem: str, advice: str
) -> None:
    def describe(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": message}}, "DescribeStacks")

    session = SimpleNamespace(region_name="eu-west-1", client=lambda _: SimpleNamespace(describe_stacks=describe))
    monkeypatch.setattr("asya.client.connection.Session", lambda **_: session)
    assert_two_lines(asya("list", "--namespace", "shop"), UNREACHABLE, problem, advice)


def test_a_profile_that_does_not_exist() -> None:
    nowhere = {"AWS_CONFIG_FILE": "/nowhere/config", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials"}
    outcome = asya("list", "--namespace", "shop", "--profile", "mine", environment=nowhere)
    assert_two_lines(outcome, UNREACHABLE, "The config profile (mine) could not be found", "--profile NAME")
