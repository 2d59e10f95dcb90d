"""Queues in the templates: encrypted, TLS only, with a dead-letter queue and an alarm; and where they are placed."""

import json
from typing import Any

import pytest

from asya.protocol.mesh_table import QUEUE_RECEIVES, Actor
from asya_infra.placement import CREW_SHARD, MOST_SHARDS, shard_of

WITH_QUEUE = {
    *("intake", "score", "crunch", "free", "gather", "approve", "audit"),
    *("x-sink", "x-sump", "x-checkpoint", "x-fan-in", "x-pause", "x-resume", "x-index", "x-dispatch", "x-completion"),
    *("x-push", "x-reports", "x-ends"),
}
REPORTS = {"x-reports", "x-ends"}
DAY = 86400


@pytest.mark.rule("4.dead-letters", "4.queue-names", "4.report-queues")
def test_each_queue_has_its_dead_letter_queue(shop: Any) -> None:
    queues = {queue["QueueName"]: queue for queue in shop.resources("AWS::SQS::Queue")}
    undelivered = queues.pop("asya-shop-x-undelivered")  # a dead-letter queue itself: of rules and subscriptions
    assert (undelivered["MessageRetentionPeriod"], undelivered["SqsManagedSseEnabled"]) == (14 * DAY, True)
    assert queues.keys() == {f"asya-shop-{name}{suffix}" for name in WITH_QUEUE for suffix in ("", "-dlq")}
    for name in WITH_QUEUE:
        queue, dead_letters = queues[f"asya-shop-{name}"], queues[f"asya-shop-{name}-dlq"]
        assert queue["MessageRetentionPeriod"] == (14 * DAY if name in REPORTS else 4 * DAY)
        assert dead_letters["MessageRetentionPeriod"] == 14 * DAY
        assert queue["SqsManagedSseEnabled"] is dead_letters["SqsManagedSseEnabled"] is True


@pytest.mark.rule("4.dead-letters", "4.report-queues")
def test_a_message_is_received_until_no_outage_may_last_longer(shop: Any) -> None:
    receives = {
        queue["QueueName"].removeprefix("asya-shop-"): queue["RedrivePolicy"]["maxReceiveCount"]
        for queue in shop.resources("AWS::SQS::Queue")
        if "RedrivePolicy" in queue
    }
    others = {"x-reports": 1000, "x-ends": 1000, "x-push": 20}
    assert receives == {name: others.get(name, QUEUE_RECEIVES) for name in WITH_QUEUE}


@pytest.mark.rule("4.dead-letters")
def test_a_queue_has_room_for_the_starts_of_its_actor() -> None:
    assert Actor(kind="handler", max_receives=1).queue_receives == QUEUE_RECEIVES
    assert Actor(kind="handler", max_receives=400).queue_receives == 800
    assert Actor(kind="handler", max_receives=1000).queue_receives == 1000


def test_a_dead_letter_queue_accepts_dead_letters_of_its_own_queue_only(shop: Any) -> None:
    queues = {queue["QueueName"]: queue for queue in shop.resources("AWS::SQS::Queue")}
    for name in WITH_QUEUE:
        assert queues[f"asya-shop-{name}-dlq"]["RedriveAllowPolicy"] == {
            "redrivePermission": "byQueue",
            "sourceQueueArns": [f"arn:<Partition>:sqs:<Region>:<AccountId>:asya-shop-{name}"],
        }


@pytest.mark.rule("4.visibility")
@pytest.mark.parametrize(
    ("actor", "window", "visibility"),
    [
        ("intake", 0, 130 + 30),
        ("free", 5, 230 + 20 + 30),  # with any window, one poll of Lambda may wait 20 s
        ("crunch", 1, 120 + 20 + 30),  # a heavy actor's own window of 2 s is about job runs
        ("approve", 0, 120 + 30),
        ("x-sink", 0, 120 + 30),
        ("x-reports", 0, 120 + 30),
        ("x-ends", 0, 120 + 30),
    ],
)
def test_messages_stay_hidden_while_lambda_gathers_them(shop: Any, actor: str, window: int, visibility: int) -> None:
    [source] = [
        each
        for each in shop.resources("AWS::Lambda::EventSourceMapping")
        if each["EventSourceArn"].endswith(f":asya-shop-{actor}")
    ]
    assert source.get("MaximumBatchingWindowInSeconds", 0) == window
    assert shop.one("AWS::SQS::Queue", QueueName=f"asya-shop-{actor}")["VisibilityTimeout"] == visibility


def test_every_queue_refuses_requests_without_tls(shop: Any) -> None:
    """A queue has one policy, so a second resource for it would replace the first."""
    for template in queue_stacks(shop):
        protected = [
            queue
            for resource in template.values()
            if resource["Type"] == "AWS::SQS::QueuePolicy"
            for queue in resource["Properties"]["Queues"]
            if refuses_without_tls(resource["Properties"]["PolicyDocument"], queue)
        ]
        queues = [f"<{name}>" for name, resource in template.items() if resource["Type"] == "AWS::SQS::Queue"]
        assert sorted(protected) == sorted(queues)


def queue_stacks(mesh: Any) -> list[dict[str, Any]]:
    """Return the resources of each stack of queues."""
    return [template["Resources"] for part, template in mesh.templates.items() if part.startswith("queues")]


def refuses_without_tls(policy: dict[str, Any], queue: str) -> bool:
    """Whether a policy denies each call on a queue that comes without TLS."""
    return any(
        each["Effect"] == "Deny"
        and each["Action"] == "sqs:*"
        and each["Principal"] == {"AWS": "*"}
        and each["Resource"] in ("*", queue.replace(">", ".Arn>"))
        and each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for each in policy["Statement"]
    )


def test_queues_that_nobody_else_may_send_to_share_one_policy_in_each_stack(shop: Any) -> None:
    for template in queue_stacks(shop):
        policies = [each["Properties"] for each in template.values() if each["Type"] == "AWS::SQS::QueuePolicy"]
        alone = [policy for policy in policies if len(policy["PolicyDocument"]["Statement"]) == 1]
        assert len(alone) == bool([each for each in template.values() if each["Type"] == "AWS::SQS::Queue"])
        assert all(len(policy["Queues"]) == 1 for policy in policies if policy not in alone)


def test_placement_never_changes() -> None:
    """These numbers never change: another one would move a queue and lose its messages."""
    assert {name: shard_of(name, MOST_SHARDS) for name in ("intake", "score", "crunch", "free", "gather", "audit")} == {
        "intake": 1,
        "score": 5,
        "crunch": 4,
        "free": 5,
        "gather": 3,
        "audit": 7,
    }


def test_an_actors_queue_and_function_are_in_the_stacks_of_its_shard(shop: Any) -> None:
    for actor in ("intake", "score", "crunch", "free", "gather", "audit"):
        queues = [q["QueueName"] for q in shop.resources("AWS::SQS::Queue", f"queues-{shard_of(actor, MOST_SHARDS)}")]
        part = f"functions-{shard_of(actor, MOST_SHARDS)}"
        functions = [f["FunctionName"] for f in shop.resources("AWS::Lambda::Function", part)]
        assert f"asya-shop-{actor}" in queues
        assert f"asya-shop-{actor}" in functions


def test_the_queues_of_reports_exist_before_any_function_that_reports(shop: Any) -> None:
    manifest = json.loads((shop.folder / "manifest.json").read_text())["artifacts"]
    crew = [q["QueueName"] for q in shop.resources("AWS::SQS::Queue", f"queues-{CREW_SHARD}")]
    assert {"asya-shop-x-reports", "asya-shop-x-ends"} <= set(crew)
    for shard in range(MOST_SHARDS):
        needed = manifest[f"Asya-shop-functions-{shard}"]["dependencies"]
        assert {f"Asya-shop-queues-{CREW_SHARD}", f"Asya-shop-queues-{shard}"} <= set(needed)


@pytest.mark.parametrize("kind", ["queues", "functions"])
def test_a_shard_without_actors_keeps_its_stacks_without_anything_in_them(shop: Any, kind: str) -> None:
    assert {f"{kind}-{shard}" for shard in range(MOST_SHARDS)} <= shop.templates.keys()
    [resource] = shop.templates[f"{kind}-2"]["Resources"].values()
    assert resource["Type"] == "AWS::CloudFormation::WaitConditionHandle"


def test_a_mesh_has_one_shard_by_default(plain: Any) -> None:
    assert plain.templates.keys() == {"state", "gateway", "dashboards", "queues-0", "functions-0"}
