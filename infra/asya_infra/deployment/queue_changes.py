"""Compares the deployed and the synthesized queues of a shard. CloudFormation deletes a removed queue with its messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from asya.protocol import names
from asya_infra.assembly import Template

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
