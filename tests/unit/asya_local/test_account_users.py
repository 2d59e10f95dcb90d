"""The operator of a local cloud keeps its key when the mesh is deployed again."""

from dataclasses import replace
from typing import Any

import boto3
import pytest

from asya_local.account import AccessKey, OperatorScope, make_operator
from tests.doubles.emulated_aws import emulated_aws

ENDPOINT = "https://iam.amazonaws.com"
DEPLOYER = AccessKey("testing", "testing")
SCOPE = OperatorScope(
    namespace="shop", api_id="a1", bucket="own", data="own/data/", results="own/results/", tasks_table="tasks"
)


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Any:
    with emulated_aws(monkeypatch):
        yield boto3.client("iam", region_name="us-east-1")


def key_ids(iam: Any) -> list[str]:
    keys = iam.list_access_keys(UserName="asya-shop-operator")["AccessKeyMetadata"]
    return [key["AccessKeyId"] for key in keys]


def test_programs_go_on_with_their_key_after_a_deployment(iam: Any) -> None:
    first = make_operator(ENDPOINT, DEPLOYER, SCOPE)
    assert make_operator(ENDPOINT, DEPLOYER, SCOPE, first) == first
    assert key_ids(iam) == [first.access_key]


def test_the_operator_writes_what_starts_tasks(iam: Any) -> None:
    make_operator(ENDPOINT, DEPLOYER, replace(SCOPE, source_buckets=("partner",), source_buses=("default",)))
    statements = iam.get_user_policy(UserName="asya-shop-operator", PolicyName="operate")["PolicyDocument"]["Statement"]
    assert {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": ["arn:aws:s3:::partner/*"]} in statements
    bus = "arn:aws:events:us-east-1:000000000000:event-bus/default"
    assert {"Effect": "Allow", "Action": ["events:PutEvents"], "Resource": [bus]} in statements


def test_an_unknown_key_is_replaced(iam: Any) -> None:
    make_operator(ENDPOINT, DEPLOYER, SCOPE)
    new = make_operator(ENDPOINT, DEPLOYER, SCOPE, AccessKey("of another cloud", "secret"))
    assert key_ids(iam) == [new.access_key]
