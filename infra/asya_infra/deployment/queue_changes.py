"""Compares the deployed and the synthesized queues, and finds actors that are no longer heavy.

CloudFormation deletes a removed queue with its messages, and the job role of such an actor.
"""

from collections.abc import Iterable, Mapping
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
