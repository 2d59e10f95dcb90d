"""A caller whose policy allows paths (`protocol §13.doors.paths`), on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from botocore.credentials import Credentials

from asya.protocol import ids
from asya.tasks.reporting.aws.gateway_client import address_of
from asya_local.account import ACCOUNT_ID
from tests.cloud.deployed_cloud import until
from tests.cloud.gateway_tasks import TERMINAL
from tests.fuzz.envelope_ids import REFUSED_EXAMPLES, SELECTED
from tests.real_account.paths import policy, problems, signed_calls

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
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


def path_of(envelope_id: str) -> str:
    return f"/api/v1/mesh/{quote(envelope_id, safe='')}"


def ended(operator: ApiCaller, envelope_id: str) -> Any:
    def poll() -> Any:
        status, task = operator.call("GET", path_of(envelope_id))
        return task if status == 200 and task["status"] in TERMINAL else None

    return until(poll, f"task {envelope_id!a} to end")


@pytest.mark.rule("1.id.characters")
def test_an_operator_reaches_the_task_of_each_id_that_a_sender_may_choose(
    gateway: DeployedCloud, operator: ApiCaller
) -> None:
    def send(envelope_id: str) -> str:
        body = {"id": envelope_id, "route": {"prev": [], "curr": "echo", "next": []}, "payload": {}}
        return gateway.send_raw("echo", json.dumps(body))

    sent = {envelope_id: send(envelope_id) for envelope_id in (*SELECTED, *REFUSED_EXAMPLES)}
    for envelope_id in SELECTED:
        assert (ended(operator, envelope_id)["id"], envelope_id) == (envelope_id, envelope_id)
        for more in ("/children", "/timeline", "/payloads"):
            assert operator.call("GET", path_of(envelope_id) + more)[0] == 200, (envelope_id, more)
        logs = f"/api/v1/operations/logs/{quote(envelope_id, safe='')}"
        assert operator.call("GET", logs)[0] == 200, envelope_id
        assert operator.call("DELETE", path_of(envelope_id))[0] == 204, envelope_id
    for envelope_id in REFUSED_EXAMPLES:
        task = ended(operator, ids.id_of_message(sent[envelope_id]))
        assert (task["reason"], task["error"]["message"]) == (
            "ParseError",
            f"Failed to parse message: id {ids.problem_of(envelope_id)}",
        )
