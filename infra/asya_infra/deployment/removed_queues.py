"""Refuses a deployment that would lose messages, and protects queues that are not checked.

CloudFormation deletes a removed queue with its messages, and the job role of an actor that is no longer heavy. Beside its queue, a
heavy actor has pending envelopes in DynamoDB, and job runs that are not closed.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.protocol.job_runs import run_id
from asya_infra.assembly import Assembly, Template
from asya_infra.deployment.deployed_templates import deployed_templates
from asya_infra.placement import MOST_SHARDS, queues_part

_QUEUE = "AWS::SQS::Queue"


@dataclass(frozen=True, order=True)
class RemovedQueue:
    """A queue that the deployment deletes, and the actor that it belongs to."""

    actor: str
    name: str
    logical_id: str


def removed_queues(deployed: Template, synthesized: Template, namespace: str) -> list[RemovedQueue]:
    """Return the queues, dead-letter queues included, that a deployment of the synthesized template deletes."""
    prefix = names.queue_name(namespace, "")
    staying, before = _queues(synthesized), _queues(deployed)
    dead_letters = {f"{name}-dlq": name for name, queue in before.items() if "RedrivePolicy" in queue["Properties"]}
    return sorted(
        RemovedQueue(dead_letters.get(name, name).removeprefix(prefix), name, str(queue["logical_id"]))
        for name, queue in before.items()
        if name not in staying
    )


def staying_actors(deployed: Template, synthesized: Template, namespace: str) -> list[str]:
    """Return the actors whose queues are in both templates, sorted."""
    prefix = names.queue_name(namespace, "")
    staying = _queues(synthesized)
    return sorted(
        name.removeprefix(prefix)
        for name, queue in _queues(deployed).items()
        if name in staying and "RedrivePolicy" in queue["Properties"]
    )


def added_queues(deployed: Template, synthesized: Template) -> list[str]:
    """Return the names of the queues that a deployment of the synthesized template creates."""
    return sorted(_queues(synthesized).keys() - _queues(deployed).keys())


def moved_queue(deployed: Mapping[str, Template], synthesized: Mapping[str, Template]) -> tuple[str, str] | None:
    """Return a queue that the deployment moves to another stack, or leaves in a stack of no shard, and its deployed stack.

    Args:
        deployed: the templates of the deployed stacks of queues, by the names of the stacks.
        synthesized: those of the deployment, empty for a stack that the mesh no longer has.
    """
    stacks = {queue: stack for stack, template in synthesized.items() for queue in _queues(template)}
    return next(
        (
            (queue, stack)
            for stack, template in deployed.items()
            for queue in sorted(_queues(template))
            if stacks.get(queue, stack) != stack or not synthesized[stack]
        ),
        None,
    )


def stack_policy(deletable: Iterable[RemovedQueue]) -> dict[str, Any]:
    """Return a stack policy that lets updates delete and replace these queues, and no other."""
    everything = {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}
    deletable_ids = sorted(f"LogicalResourceId/{queue.logical_id}" for queue in deletable)
    others = {"NotResource": deletable_ids} if deletable_ids else {"Resource": "*"}
    queues = {
        "Effect": "Deny",
        "Action": ["Update:Delete", "Update:Replace"],
        "Principal": "*",
        **others,
        "Condition": {"StringEquals": {"ResourceType": [_QUEUE]}},
    }
    return {"Statement": [everything, queues]}


def _queues(template: Template) -> dict[str, dict[str, Any]]:
    return {
        resource["Properties"]["QueueName"]: {**resource, "logical_id": logical_id}
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == _QUEUE
    }


_ROLE = "AWS::IAM::Role"


def no_longer_heavy(
    deployed: Template, synthesized: Template, actors: Iterable[str], namespace: str, region: str
) -> list[str]:
    """Return those of the actors whose job role a deployment of the synthesized template deletes.

    Args:
        deployed, synthesized: the templates of one stack of functions.
        actors: the actors whose queues stay.
        namespace: the namespace with its stage.
        region: the region of the mesh.
    """
    removed = _role_names(deployed, region) - _role_names(synthesized, region)
    return [actor for actor in actors if names.role_name(namespace, names.job_role(actor), region) in removed]


def _role_names(template: Template, region: str) -> set[str]:
    resources = template.get("Resources", {}).values()
    return {_text(each["Properties"].get("RoleName"), region) for each in resources if each["Type"] == _ROLE}


def _text(name: Any, region: str) -> str:
    """Return the name of a role. Its region is a reference if the template does not know it."""
    if isinstance(name, dict):
        parts = name["Fn::Join"][1] if "Fn::Join" in name else [name]
        return "".join(part if isinstance(part, str) else region for part in parts)
    return str(name)


@dataclass(frozen=True)
class HeavyBacklog:
    """The backlog of one actor; false if there is none, as with each light actor.

    Attributes:
        pending: number of envelopes that wait for a job run; above 10,000 only about.
        runs: the ids of the runs whose results are not all routed, oldest first.
    """

    pending: int = 0
    runs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pending or self.runs)

    def __str__(self) -> str:
        envelopes = "1 pending envelope" if self.pending == 1 else f"{self.pending} pending envelopes"
        runs = "1 open job run" if len(self.runs) == 1 else f"{len(self.runs)} open job runs"
        return f"{envelopes} and {runs}" + (f" ({', '.join(self.runs)})" if self.runs else "")


def heavy_backlog(session: Any, namespace: str, actor: str) -> HeavyBacklog:
    """Return the backlog of an actor.

    An envelope goes from the queue to the pending ones to a run. So the queue is counted before, and the runs last here;
    otherwise an envelope on its way could be missed.

    Args:
        session: a boto3 session in the account and region of the mesh.
        namespace: the namespace with its stage.
        actor: the actor, heavy or not.
    """
    dynamodb = session.client("dynamodb")
    table = names.table_name(namespace, names.PENDING_TABLE)
    try:
        pending = Pending(dynamodb, session.client("s3"), table=table, bucket="").count(actor)  # counts need no bucket
        records = RunRecords(dynamodb, table=table, retention=timedelta(0))
        # Records expire, and the item of an open run does not.
        numbers = [number for number in records.open_numbers(actor) if records.get(actor, number) is not None]
    except dynamodb.exceptions.ResourceNotFoundException:
        return HeavyBacklog()
    return HeavyBacklog(pending, tuple(run_id(namespace, actor, number) for number in numbers))


# SQS refuses the name of a queue for this time after its deletion (QueueDeletedRecently).
BLOCKED = timedelta(seconds=60)


@dataclass(frozen=True)
class Problem:
    """A reason to refuse the deployment: the queue, and what to do."""

    queue: str
    message: str

    def __str__(self) -> str:
        return f"{self.queue}: {self.message}"


def not_empty(queue: RemovedQueue, messages: int) -> Problem:
    """Return the problem that a removed queue has messages."""
    redrive = f"`asya dlq redrive {queue.actor}`" if queue.name.endswith("-dlq") else "let the actor process them"
    count = "1 message" if messages == 1 else f"{messages} messages"
    return Problem(
        queue.name,
        f"the deployment removes the actor {queue.actor}, and this queue has about {count} that would be lost. "
        f"Restore the actor in the mesh file, take it out of all routes, and deploy; empty the queue ({redrive}); then "
        f"remove the actor. To lose the messages: --drop-messages {queue.actor}",
    )


def not_finished(queue: str, actor: str, backlog: HeavyBacklog) -> Problem:
    """Return the problem that a removed heavy actor has a backlog."""
    return Problem(
        queue,
        f"the deployment removes the heavy actor {actor}, which has {backlog}. Its runs would be cut off, and its envelopes "
        f"would never end. Restore the actor in the mesh file, take it out of all routes, and deploy; when its runs have "
        f"ended, remove the actor. To lose the envelopes: --drop-messages {actor}",
    )


def becomes_light(queue: str, actor: str, backlog: HeavyBacklog) -> Problem:
    """Return the problem that a heavy actor with a backlog becomes light."""
    return Problem(
        queue,
        f"the deployment changes the actor {actor} from heavy to light, and it has {backlog}. Its runs would be cut off, and "
        f"its envelopes would never end. Keep the actor heavy in the mesh file, take it out of all routes, and deploy; when "
        f"its runs have ended, change it. To leave the envelopes: --drop-messages {actor}",
    )


def deleted_recently(name: str, age: timedelta) -> Problem:
    """Return the problem that SQS still refuses the name of a queue."""
    seconds = max(1, round((BLOCKED - age).total_seconds()))
    return Problem(
        name,
        "this queue was deleted less than a minute ago, and SQS refuses its name for 60 seconds (QueueDeletedRecently). "
        f"Deploy again in {seconds} s",
    )


def moved(queue: str, stack: str, shards: int) -> Problem:
    """Return the problem that another number of shards moves a queue out of its stack.

    Args:
        queue: the queue.
        stack: its deployed stack.
        shards: the number of deployed stacks of queues.
    """
    return Problem(
        queue,
        f"the mesh is deployed with `shards: {shards}`, and another number would move this queue out of {stack} and lose its "
        f"messages. Set `shards: {shards}`, or see docs/how-to/remove-and-restore.md#change-the-number-of-shards",
    )


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

    A queue must stay in its stack. A removed queue must be empty. A heavy actor that is removed or becomes light must have no
    pending envelopes and no open job runs. A queue must not return within a minute of its deletion.

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
    deployed = deployed_templates(session, _queue_stacks(assembly))
    if problem := _moved(deployed, assembly):
        return [problem]
    for shard in _shards(deployed, assembly):
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
    for shard in _shards(deployed_templates(session, _queue_stacks(assembly)), assembly):
        _set_policy(cloudformation, shard, removed_queues(shard.deployed, shard.synthesized, assembly.namespace))


def protect_all_queues(session: Any, assembly: Assembly) -> None:
    """Set the stack policies of the queues: an update may delete none.

    Called after the deployment. A failed one leaves the removed queues, and messages may arrive in them.
    """
    cloudformation = session.client("cloudformation")
    for shard in _shards(deployed_templates(session, _queue_stacks(assembly)), assembly):
        _set_policy(cloudformation, shard, ())


def _set_policy(cloudformation: Any, shard: _Shard, deletable: Iterable[RemovedQueue]) -> None:
    cloudformation.set_stack_policy(StackName=shard.stack, StackPolicyBody=json.dumps(stack_policy(deletable)))


def _queue_stacks(assembly: Assembly) -> list[str]:
    """Return the names that the stacks of queues may have."""
    return [names.stack_name(assembly.namespace, queues_part(shard)) for shard in range(MOST_SHARDS)]


def _moved(deployed: Mapping[str, Template], assembly: Assembly) -> Problem | None:
    """Return the problem that the mesh file changes the number of shards; None if no queue leaves its stack."""
    synthesized = {stack: assembly.templates.get(stack, {}) for stack in _queue_stacks(assembly)}
    found = moved_queue(deployed, synthesized)
    return moved(*found, len(deployed)) if found else None


def _shards(deployed: Mapping[str, Template], assembly: Assembly) -> Iterator[_Shard]:
    # `cdk deploy` changes no stack without a template.
    for stack, template in deployed.items():
        if stack in assembly.templates:
            yield _Shard(stack, template, assembly.templates[stack])


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
