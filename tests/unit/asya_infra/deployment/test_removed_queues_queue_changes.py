"""Removed and added queues of a shard, and the stack policy that lets only the removed ones go."""

from typing import Any

from asya_infra.deployment.removed_queues import RemovedQueue, added_queues, removed_queues, stack_policy


def template(*actors: str) -> dict[str, Any]:
    resources: dict[str, Any] = {"Alarm": {"Type": "AWS::CloudWatch::Alarm"}}
    for actor in actors:
        name = f"asya-shop-{actor}"
        policy = {"maxReceiveCount": 5}
        resources[f"Q{actor}"] = {
            "Type": "AWS::SQS::Queue",
            "Properties": {"QueueName": name, "RedrivePolicy": policy},
        }
        resources[f"D{actor}"] = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": f"{name}-dlq"}}
    return {"Resources": resources}


def test_an_actor_is_removed_with_its_queue_and_its_dead_letter_queue() -> None:
    assert removed_queues(template("bill", "ship"), template("ship"), "shop") == [
        RemovedQueue("bill", "asya-shop-bill", "Qbill"),
        RemovedQueue("bill", "asya-shop-bill-dlq", "Dbill"),
    ]


def test_an_actor_may_have_the_suffix_of_dead_letter_queues() -> None:
    assert [(queue.actor, queue.name) for queue in removed_queues(template("x-dlq"), template(), "shop")] == [
        ("x-dlq", "asya-shop-x-dlq"),
        ("x-dlq", "asya-shop-x-dlq-dlq"),
    ]


def test_nothing_is_removed_by_another_logical_id_or_an_added_actor() -> None:
    renamed = template("bill")
    renamed["Resources"] = {f"New{key}": value for key, value in renamed["Resources"].items()}
    assert removed_queues(template("bill"), renamed, "shop") == []
    assert removed_queues(template("bill"), template("bill", "ship"), "shop") == []


def test_the_last_actor_of_a_shard() -> None:
    empty = {"Resources": {"NoActors": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}
    assert len(removed_queues(template("bill"), empty, "shop")) == 2
    assert added_queues(empty, template("bill")) == ["asya-shop-bill", "asya-shop-bill-dlq"]


def test_the_stack_policy_denies_to_delete_all_queues_but_the_removed_ones() -> None:
    allow, deny = stack_policy(removed_queues(template("bill", "ship"), template("ship"), "shop"))["Statement"]
    assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "Update:*", "*")
    assert deny == {
        "Effect": "Deny",
        "Action": ["Update:Delete", "Update:Replace"],
        "Principal": "*",
        "NotResource": ["LogicalResourceId/Dbill", "LogicalResourceId/Qbill"],
        "Condition": {"StringEquals": {"ResourceType": ["AWS::SQS::Queue"]}},
    }
    assert stack_policy([])["Statement"][1]["Resource"] == "*"
