"""Tests the role and the workflow of `docs/how-to/deploy-from-github.md` against the code that they are for."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
import typer
import yaml

from asya_cli.main import app
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "deploy-from-github.md").read_text()
# What makes calls with the credentials of the workflow. The roles of `cdk bootstrap` do the rest.
CALLERS = [
    *sorted((PROJECT / "infra" / "asya_infra" / "deployment").glob("*.py")),
    PROJECT / "infra" / "asya_infra" / "preflight" / "read_account.py",
    PROJECT / "asya_cli" / "smoke" / "steps.py",
    PROJECT / "asya_cli" / "contracts" / "earlier.py",
]
# Calls whose permission has another name.
PERMISSIONS = {
    "service-quotas:GetServiceQuota": "servicequotas:GetServiceQuota",
    "service-quotas:GetAWSDefaultServiceQuota": "servicequotas:GetAWSDefaultServiceQuota",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketNotificationConfiguration": "s3:GetBucketNotification",
}
WAITERS = {"stack_delete_complete": "cloudformation:DescribeStacks"}
# `asya smoke` sends envelopes, calls the gateway and reads results by the client of all commands; `cdk` assumes roles;
# `heavy_backlog` reads pending envelopes and runs by the library.
OTHERS = {
    "dynamodb:GetItem",
    "dynamodb:Query",
    "execute-api:Invoke",
    "s3:GetObject",
    "sqs:SendMessage",
    "sts:AssumeRole",
    "sts:TagSession",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def allowed() -> set[str]:
    policies = [json.loads(block) for block in blocks("json")]
    [policy] = [policy for policy in policies if "Principal" not in policy["Statement"][0]]
    return {action for statement in policy["Statement"] for action in statement["Action"]}


@cache
def operations(service: str) -> dict[str, str]:
    """The calls of a service by the names of their methods."""
    session: Any = boto3.Session("testing", "testing", region_name="us-east-1")
    return dict(session.client(service).meta.method_to_api_mapping)


def needed(path: Path) -> Iterator[str]:
    """The permissions for the calls in a module: its methods and strings that name calls of the services that it uses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = texts | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    services = texts & set(boto3.Session().get_available_services())
    for service in services:
        calls = {f"{service}:{operations(service)[name]}" for name in names & operations(service).keys()}
        yield from (PERMISSIONS.get(call, call) for call in calls)
    yield from (permission for waiter, permission in WAITERS.items() if waiter in texts)


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.stem)
def test_the_role_allows_each_call(path: Path) -> None:
    assert set(needed(path)) - allowed() == set()


def test_the_role_allows_nothing_else() -> None:
    assert allowed() - {permission for path in CALLERS for permission in needed(path)} == OTHERS


def test_the_trust_policy_names_one_repository_and_one_environment() -> None:
    [trust] = [policy for block in blocks("json") if "Principal" in (policy := json.loads(block))["Statement"][0]]
    [statement] = trust["Statement"]
    conditions = statement["Condition"]["StringEquals"]
    assert conditions["token.actions.githubusercontent.com:aud"] == "sts.amazonaws.com"
    assert re.fullmatch(r"repo:[^*]+:environment:[^*]+", conditions["token.actions.githubusercontent.com:sub"])


def test_the_workflow_runs_commands_that_exist() -> None:
    [text] = blocks("yaml")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
    runs = [step["run"] for step in workflow["jobs"]["deploy"]["steps"] if "run" in step]
    command: Any = typer.main.get_command(app)
    installation, *commands = [run.split() for run in runs]
    assert installation[:2] == ["pip", "install"]
    assert {"--require-hashes", "requirements-deploy.lock"} <= set(installation)
    for words in commands:
        assert words[0] == "asya"
        command.commands[words[1]].make_context(words[1], words[2:])
    # The workflow checks before it deploys, and tests after it.
    assert [words[1] for words in commands] == ["doctor", "deploy", "smoke"]


def test_the_workflow_is_set_up_like_that_of_this_repository() -> None:
    [text] = blocks("yaml")
    uses = re.compile(r"uses: (actions/\S+)")
    own = (PROJECT / ".github" / "workflows" / "ci.yml").read_text()
    assert uses.findall(text) == uses.findall(own)
