"""Refuses a deployment that would lose messages, and keeps CloudFormation from deleting queues that are not checked.

Both are for the command that deploys, before and after `cdk deploy`. After that command, the stack policy also holds for a
plain `cdk deploy`: CloudFormation refuses to delete a queue.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from asya.protocol import names
from asya_infra.assembly import Assembly, Template
from asya_infra.deployment.deployed_templates import deployed_templates
from asya_infra.deployment.heavy_backlog import heavy_backlog
from asya_infra.deployment.kind_changes import no_longer_heavy
from asya_infra.deployment.queue_changes import (
    RemovedQueue,
    added_queues,
    removed_queues,
    stack_policy,
    staying_actors,
)
from asya_infra.deployment.queue_problems import (
    BLOCKED,
    Problem,
    becomes_light,
    deleted_recently,
    not_empty,
    not_finished,
)
from asya_infra.placement import SHARDS

_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
)


@dataclass(frozen=True)
class _Shard:
    """The templates of a deployed stack of queues."""

    stack: str
    deployed: Template
    synthesized: Template


def check_removed_queues(
    session: Any,
    assembly: Assembly,
    *,
    dropped: Collection[str] = (),
    now: datetime | None = None,
) -> list[Problem]:
    """Return the reasons against a deployment of the synthesized templates.

    A removed queue must be empty. A heavy actor that is removed or becomes light must have no pending envelopes and no open
    job runs. A queue must not return within a minute of its deletion.

    The counts of SQS are approximate, and messages may arrive after the check, so an actor is first taken out of all
    routes.

    Args:
        session: a boto3 session in the account and region of the mesh.
        assembly: the synthesized mesh.
        dropped: actors whose messages may be deleted, or whose backlog may be left.
        now: the time; by default the current one.
    """
    cloudformation, sqs = session.client("cloudformation"), session.client("sqs")
    moment = now or datetime.now(UTC)
    problems: list[Problem] = []
    for shard in _shards(session, assembly):
        removed = removed_queues(shard.deployed, shard.synthesized, assembly.namespace)
        kept = [queue for queue in removed if queue.actor not in dropped]
        problems += [not_empty(queue, count) for queue in kept if (count := _messages(sqs, queue.name))]
        for actor in dict.fromkeys(queue.actor for queue in kept):
            if backlog := heavy_backlog(session, assembly.namespace, actor):
                problems.append(not_finished(names.queue_name(assembly.namespace, actor), actor, backlog))
        for actor in _newly_light(session, assembly, shard):
            if actor not in dropped and (backlog := heavy_backlog(session, assembly.namespace, actor)):
                problems.append(becomes_light(names.queue_name(assembly.namespace, actor), actor, backlog))
        if added := added_queues(shard.deployed, shard.synthesized):
            deletions = _deletions(cloudformation, shard.stack, moment - BLOCKED)
            problems += [deleted_recently(name, moment - deletions[name]) for name in added if name in deletions]
    return problems


def protect_queues(session: Any, assembly: Assembly) -> None:
    """Set the stack policies of the queues: an update may delete those that the synthesized templates lack, and no other.

    Called before the deployment, after the check; `protect_all_queues` follows. If the process dies in between, the queues
    that were checked stay deletable until the next deployment.
    """
    cloudformation = session.client("cloudformation")
    for shard in _shards(session, assembly):
        _set_policy(cloudformation, shard, removed_queues(shard.deployed, shard.synthesized, assembly.namespace))


def protect_all_queues(session: Any, assembly: Assembly) -> None:
    """Set the stack policies of the queues: an update may delete none.

    Called after the deployment. A failed one leaves the removed queues, and messages may arrive in them.
    """
    cloudformation = session.client("cloudformation")
    for shard in _shards(session, assembly):
        _set_policy(cloudformation, shard, ())


def _set_policy(cloudformation: Any, shard: _Shard, deletable: Iterable[RemovedQueue]) -> None:
    cloudformation.set_stack_policy(StackName=shard.stack, StackPolicyBody=json.dumps(stack_policy(deletable)))


def _shards(session: Any, assembly: Assembly) -> Iterator[_Shard]:
    # `cdk deploy` changes no stack without a template.
    stacks = [names.stack_name(assembly.namespace, f"queues-{shard}") for shard in range(SHARDS)]
    for stack, deployed in deployed_templates(session, filter(assembly.templates.__contains__, stacks)).items():
        yield _Shard(stack, deployed, assembly.templates[stack])


def _newly_light(session: Any, assembly: Assembly, shard: _Shard) -> list[str]:
    """Return the actors of a shard that the deployment changes from heavy to light."""
    functions = names.stack_name(assembly.namespace, f"functions-{shard.stack.rpartition('-')[2]}")
    synthesized = assembly.templates.get(functions)
    deployed = deployed_templates(session, [functions]).get(functions) if synthesized is not None else None
    if synthesized is None or deployed is None:
        return []
    actors = staying_actors(shard.deployed, shard.synthesized, assembly.namespace)
    return no_longer_heavy(deployed, synthesized, actors, assembly.namespace, session.region_name)


def _messages(sqs: Any, queue: str) -> int:
    """Return the approximate number of messages; 0 if the queue does not exist."""
    try:
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS))["Attributes"]
    except sqs.exceptions.QueueDoesNotExist:
        return 0
    return sum(int(attributes[name]) for name in _COUNTS)


def _deletions(cloudformation: Any, stack: str, since: datetime) -> dict[str, datetime]:
    """Return when queues of a stack were deleted since a moment, by their names."""
    deletions: dict[str, datetime] = {}
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack):
        for event in page["StackEvents"]:  # the newest first
            if event["Timestamp"] <= since:
                return deletions
            if event["ResourceType"] == "AWS::SQS::Queue" and event["ResourceStatus"] == "DELETE_COMPLETE":
                deletions.setdefault(event["PhysicalResourceId"].rpartition("/")[2], event["Timestamp"])
    return deletions
