"""A caller whose policy allows paths (`protocol §13.doors.paths`), on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from botocore.credentials import Credentials

from asya.tasks.reporting.aws.gateway_client import address_of
from asya_local.account import ACCOUNT_ID
from tests.real_account.paths import policy, problems, signed_calls

if TYPE_CHECKING:
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


@pytest.mark.rule("13.doors.paths", "13.doors")
def test_a_caller_makes_the_calls_that_its_policy_allows_by_path(gateway: DeployedCloud) -> None:
    """Also under a greedy route, and however the path is written. `scripts/real-account-smoke` checks the same on AWS."""
    iam, connection = gateway.client("iam"), gateway.mesh.connection
    outputs = gateway.client("cloudformation").describe_stacks(StackName="Asya-gateway-gateway")["Stacks"][0]["Outputs"]
    [api] = [each["OutputValue"] for each in outputs if each["OutputKey"] == "GatewayApiId"]
    arn = f"arn:aws:execute-api:{connection.region}:{ACCOUNT_ID}:{api}/$default"
    iam.create_user(UserName="paths")
    iam.put_user_policy(UserName="paths", PolicyName="paths", PolicyDocument=json.dumps(policy(arn)))
    key = iam.create_access_key(UserName="paths")["AccessKey"]
    ask = signed_calls(
        connection.gateway_url, connection.region, Credentials(key["AccessKeyId"], key["SecretAccessKey"]), address_of
    )
    assert list(problems(ask)) == []
