"""MiniStack's batch actions are added to the single ones of AWS."""

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from asya_local.batch_actions import add_batch_actions, with_batch_actions


def test_each_single_action_gets_its_batch_action() -> None:
    send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "q"}
    many = {"Effect": "Deny", "Action": ["sqs:DeleteMessage", "sqs:ReceiveMessage", "s3:GetObject"], "Resource": "q"}
    other = {"Effect": "Allow", "NotAction": "sqs:*", "Resource": "*"}

    statements = with_batch_actions({"Version": "2012-10-17", "Statement": [send, many, other]})["Statement"]

    assert statements[0]["Action"] == ["sqs:SendMessage", "sqs:SendMessageBatch"]
    assert statements[1]["Action"] == [*many["Action"], "sqs:DeleteMessageBatch"]
    assert statements[2] == other
    assert with_batch_actions({"Statement": statements})["Statement"] == statements


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield boto3.client("iam", region_name="us-east-1")


def send_to(queue: str) -> str:
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queue}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def allowed_actions(document: Any) -> Any:
    return document["Statement"][0]["Action"]


def test_inline_and_managed_policies_get_them_once(iam: Any) -> None:
    """Roles of large meshes send by managed policies, which several roles share."""
    policy = iam.create_policy(PolicyName="send", PolicyDocument=send_to("arn:aws:sqs:us-east-1:123456789012:q"))[
        "Policy"
    ]["Arn"]
    for role in ("asya-shop-a", "asya-shop-b", "asya-other-a"):
        iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
        iam.put_role_policy(
            RoleName=role, PolicyName="permissions", PolicyDocument=send_to("arn:aws:sqs:us-east-1:123456789012:q")
        )
        iam.attach_role_policy(RoleName=role, PolicyArn=policy)

    for _ in range(2):  # each deployment calls it
        add_batch_actions(iam, "shop")

    inline = {
        role: iam.get_role_policy(RoleName=role, PolicyName="permissions")["PolicyDocument"]
        for role in ("asya-shop-a", "asya-other-a")
    }
    assert allowed_actions(inline["asya-shop-a"]) == ["sqs:SendMessage", "sqs:SendMessageBatch"]
    assert allowed_actions(inline["asya-other-a"]) == "sqs:SendMessage"
    version = iam.get_policy(PolicyArn=policy)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=policy, VersionId=version)["PolicyVersion"]["Document"]
    assert allowed_actions(document) == ["sqs:SendMessage", "sqs:SendMessageBatch"]
    assert len(iam.list_policy_versions(PolicyArn=policy)["Versions"]) == 1
