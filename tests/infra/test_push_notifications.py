"""Push notifications in the templates: event sources and permissions of their functions."""

import json
from typing import Any

import pytest

from tests.infra.test_permissions import SINK_TABLE, listed, resources, statements

TABLE = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-tasks"


def changes(mesh: Any) -> list[dict[str, Any]]:
    """The event source mappings of table streams."""
    feeds = mesh.resources("AWS::Lambda::EventSourceMapping")
    return [each for each in feeds if each.get("StartingPosition")]


def test_only_the_tasks_table_has_a_stream(shop: Any) -> None:
    tables = {table["TableName"]: table for table in shop.resources("AWS::DynamoDB::Table", "state")}
    streams = {name: each["StreamSpecification"] for name, each in tables.items() if "StreamSpecification" in each}
    assert streams == {"asya-shop-tasks": {"StreamViewType": "NEW_AND_OLD_IMAGES"}}


@pytest.mark.rule("13.a2a.push.cost")
def test_only_watched_records_invoke_the_function(shop: Any) -> None:
    [feed] = changes(shop)
    assert (feed["EventSourceArn"], feed["StartingPosition"]) == ("<import>", "TRIM_HORIZON")
    [pattern] = [json.loads(each["Pattern"]) for each in feed["FilterCriteria"]["Filters"]]
    assert pattern == {"dynamodb": {"Keys": {"sk": {"S": ["record"]}}, "NewImage": {"is_watched": {"BOOL": [True]}}}}


@pytest.mark.rule("13.a2a.push")
def test_failed_changes_go_to_the_dead_letter_queue(shop: Any) -> None:
    [feed] = changes(shop)
    assert (feed["MaximumRetryAttempts"], feed["BisectBatchOnFunctionError"]) == (10, True)
    assert feed["DestinationConfig"]["OnFailure"]["Destination"].endswith(":asya-shop-x-push-dlq")
    queue = shop.one("AWS::SQS::Queue", QueueName="asya-shop-x-push")
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 20  # waiting for a share counts as received


@pytest.mark.rule("13.a2a.push.address")
def test_the_function_that_calls_third_parties_has_few_permissions(shop: Any) -> None:
    allowed = {action for statement in statements(shop, "x-push") for action in listed(statement["Action"])}
    own = {action for action in allowed if not action.startswith(("logs:", "sqs:"))}
    assert own == {"dynamodb:GetItem", "dynamodb:UpdateItem"}
    assert resources(shop, "x-push", "dynamodb:GetItem") == {TABLE, SINK_TABLE}  # of the latter the list of roles
    [writes] = [each for each in statements(shop, "x-push") if "dynamodb:UpdateItem" in listed(each["Action"])]
    assert writes["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["PUSH#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    assert resources(shop, "x-push", "execute-api:Invoke") == set()
    assert resources(shop, "x-push-feed", "dynamodb:GetRecords") == {f"{TABLE}/stream/*"}
    assert resources(shop, "x-push-feed", "dynamodb:PutItem") == set()


def test_a_mesh_without_tools_has_no_such_functions_but_exports_the_stream(plain: Any) -> None:
    assert changes(plain) == []
    names = {function["FunctionName"] for function in plain.resources("AWS::Lambda::Function")}
    assert not any("push" in name for name in names)
    # The stream's address stays exported, so that taking the last tool out is no obstacle.
    assert any("StreamArn" in json.dumps(each) for each in plain.templates["state"]["Outputs"].values())
