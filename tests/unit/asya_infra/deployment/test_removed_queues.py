"""A deployment that removes queues, on an emulated SQS."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from asya_infra.assembly import Assembly
from asya_infra.deployment.removed_queues import check_removed_queues, protect_all_queues, protect_queues
from tests.doubles.emulated_aws import emulated_aws
from tests.unit.asya_infra.deployment.test_removed_queues_heavy_backlog import (
    REGION,
    add_pending,
    create_table,
    open_run,
)
from tests.unit.asya_infra.deployment.test_removed_queues_queue_changes import template

STACK = "Asya-shop-queues-3"
OTHER_STACK = "Asya-shop-queues-0"
FUNCTIONS = "Asya-shop-functions-3"


class Stacks:
    """CloudFormation with the stacks of one shard or none; moto's needs packages that are not installed."""

    def __init__(self) -> None:
        self.template: dict[str, Any] | None = None
        self.functions: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []
        self.policy: dict[str, Any] | None = None

    def get_template(self, *, StackName: str, TemplateStage: str) -> dict[str, Any]:  # noqa: N803
        assert TemplateStage == "Original"
        template = {STACK: self.template, FUNCTIONS: self.functions}.get(StackName)
        if template is None:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "GetTemplate")
        return {"TemplateBody": template}

    def set_stack_policy(self, *, StackName: str, StackPolicyBody: str) -> None:  # noqa: N803
        assert StackName == STACK
        self.policy = json.loads(StackPolicyBody)

    def get_paginator(self, action: str) -> Any:
        assert action == "describe_stack_events"
        return self

    def paginate(self, *, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        assert StackName == STACK
        yield from ({"StackEvents": [event]} for event in self.events)


class Session:
    """The clients of one account."""

    def __init__(self) -> None:
        self.stacks = Stacks()
        self.session = boto3.Session(region_name=REGION)
        self.region_name = REGION
        self.sqs = self.session.client("sqs")

    def client(self, name: str) -> Any:
        return self.stacks if name == "cloudformation" else self.session.client(name)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with emulated_aws(monkeypatch, REGION):
        session = Session()
        create_table(session.session)
        yield session


def deploy(session: Session, *actors: str) -> None:
    session.stacks.template = template(*actors)
    for actor in actors:
        session.sqs.create_queue(QueueName=f"asya-shop-{actor}")
        session.sqs.create_queue(QueueName=f"asya-shop-{actor}-dlq")


def synthesized(*actors: str) -> Assembly:
    return Assembly(Path("cdk.out"), "shop", {STACK: template(*actors)})


def send(session: Session, queue: str, number: int) -> None:
    sqs = session.sqs
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    for _ in range(number):
        sqs.send_message(QueueUrl=url, MessageBody="{}")


def test_a_first_deployment_has_no_problems(session: Session) -> None:
    assert check_removed_queues(session, synthesized("bill")) == []
    protect_queues(session, synthesized("bill"))
    assert session.stacks.policy is None


def test_a_removed_queue_with_messages_is_refused(session: Session) -> None:
    deploy(session, "bill", "ship")
    send(session, "asya-shop-bill", 3)
    send(session, "asya-shop-bill-dlq", 1)
    send(session, "asya-shop-ship", 2)
    problems = [str(each) for each in check_removed_queues(session, synthesized("ship"))]
    assert [text.partition(":")[0] for text in problems] == ["asya-shop-bill", "asya-shop-bill-dlq"]
    assert "about 3 messages" in problems[0]
    assert "asya dlq redrive bill" in problems[1]
    assert all("--drop-messages bill" in text for text in problems)


def test_messages_in_flight_and_delayed_ones_count(session: Session) -> None:
    deploy(session, "bill")
    sqs = session.sqs
    url = sqs.get_queue_url(QueueName="asya-shop-bill")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    sqs.receive_message(QueueUrl=url)
    sqs.send_message(QueueUrl=url, MessageBody="{}", DelaySeconds=900)
    [problem] = check_removed_queues(session, synthesized())
    assert "about 2 messages" in problem.message


def test_an_empty_or_missing_queue_may_go(session: Session) -> None:
    deploy(session, "bill", "ship")
    sqs = session.sqs
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="asya-shop-ship")["QueueUrl"])
    assert check_removed_queues(session, synthesized()) == []


def test_messages_are_dropped_on_request_for_the_named_actor_only(session: Session) -> None:
    deploy(session, "bill", "ship")
    send(session, "asya-shop-bill", 1)
    send(session, "asya-shop-ship", 1)
    problems = check_removed_queues(session, synthesized(), dropped={"bill"})
    assert [problem.queue for problem in problems] == ["asya-shop-ship"]


def test_a_removed_heavy_actor_with_a_backlog_is_refused(session: Session) -> None:
    deploy(session, "crunch", "other")
    add_pending(session.session, "crunch", 3)
    open_run(session.session, "crunch", 12)
    add_pending(session.session, "other", 1)
    [problem] = map(str, check_removed_queues(session, synthesized("other")))
    assert problem.startswith(
        "asya-shop-crunch: the deployment removes the heavy actor crunch, which has 3 pending envelopes and 1 open job run "
        "(asya.shop.crunch.0000000012). "
    )
    assert check_removed_queues(session, synthesized("other"), dropped={"crunch"}) == []


def roles(*heavy: str, region: Any = REGION) -> dict[str, Any]:
    """The template of functions, with the roles of these heavy actors' job runs; the region is a text or a reference."""
    names = {
        actor: f"asya-shop-x-job-{actor}-{region}"
        if isinstance(region, str)
        else {"Fn::Join": ["", [f"asya-shop-x-job-{actor}-", region]]}
        for actor in heavy
    }
    resources = {f"R{actor}": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": names[actor]}} for actor in heavy}
    return {"Resources": {**resources, "F": {"Type": "AWS::Lambda::Function", "Properties": {}}}}


@pytest.mark.parametrize("region", [REGION, {"Ref": "AWS::Region"}])
def test_a_heavy_actor_with_a_backlog_does_not_become_light(session: Session, region: Any) -> None:
    deploy(session, "crunch", "crunch-more", "bill")
    session.stacks.functions = roles("crunch", "crunch-more", region=region)
    for actor in ("crunch", "crunch-more", "bill"):
        add_pending(session.session, actor, 2)
    open_run(session.session, "crunch", 12)
    queues = template("crunch", "crunch-more", "bill")
    changed = Assembly(Path("cdk.out"), "shop", {STACK: queues, FUNCTIONS: roles("crunch-more", region=region)})
    [problem] = map(str, check_removed_queues(session, changed))
    assert problem.startswith(
        "asya-shop-crunch: the deployment changes the actor crunch from heavy to light, and it has 2 pending envelopes and "
        "1 open job run (asya.shop.crunch.0000000012). "
    )
    assert check_removed_queues(session, changed, dropped={"crunch"}) == []
    unchanged = Assembly(Path("cdk.out"), "shop", {STACK: queues, FUNCTIONS: roles("crunch", "crunch-more")})
    assert check_removed_queues(session, unchanged) == []


def test_a_heavy_actor_without_a_backlog_may_become_light(session: Session) -> None:
    deploy(session, "crunch")
    session.stacks.functions = roles("crunch")
    send(session, "asya-shop-crunch", 3)
    assembly = Assembly(Path("cdk.out"), "shop", {STACK: template("crunch"), FUNCTIONS: roles()})
    assert check_removed_queues(session, assembly) == []


@pytest.mark.parametrize(
    "shards", [{}, {OTHER_STACK: template("bill")}, {STACK: template(), OTHER_STACK: template("bill")}]
)
def test_another_number_of_shards_is_refused(session: Session, shards: dict[str, Any]) -> None:
    """A queue would leave its stack, or stay in one that no deployment updates."""
    deploy(session, "bill")
    [problem] = map(str, check_removed_queues(session, Assembly(Path("cdk.out"), "shop", shards), dropped={"bill"}))
    assert problem.startswith(
        "asya-shop-bill: the mesh is deployed with `shards: 1`, and another number would move this queue "
    )


def test_a_shard_whose_first_deployment_failed_is_added(session: Session) -> None:
    deploy(session, "bill")
    shards = {STACK: template("bill"), OTHER_STACK: template("ship")}
    assert check_removed_queues(session, Assembly(Path("cdk.out"), "shop", shards)) == []


def deletion(queue: str, when: datetime) -> dict[str, Any]:
    return {
        "ResourceType": "AWS::SQS::Queue",
        "ResourceStatus": "DELETE_COMPLETE",
        "PhysicalResourceId": f"https://sqs.eu-central-1.amazonaws.com/123456789012/{queue}",
        "Timestamp": when,
    }


def test_a_queue_does_not_return_within_a_minute_of_its_deletion(session: Session) -> None:
    deploy(session, "ship")
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    events = [
        deletion("asya-shop-bill", now - timedelta(seconds=20)),
        deletion("asya-shop-bill-dlq", now - timedelta(seconds=61)),
    ]
    session.stacks.events = events
    problems = check_removed_queues(session, synthesized("bill", "ship"), now=now)
    assert [str(problem) for problem in problems] == [
        "asya-shop-bill: this queue was deleted less than a minute ago, and SQS refuses its name for 60 seconds "
        "(QueueDeletedRecently). Deploy again in 40 s"
    ]


def test_only_removed_queues_can_be_deleted(session: Session) -> None:
    deploy(session, "bill", "ship")

    def deletable() -> Any:
        assert session.stacks.policy is not None
        return session.stacks.policy["Statement"][1].get("NotResource")

    protect_queues(session, synthesized("ship"))
    assert deletable() == ["LogicalResourceId/Dbill", "LogicalResourceId/Qbill"]
    # A failed deployment leaves the queues that it should have deleted.
    protect_all_queues(session, synthesized("ship"))
    assert deletable() is None
