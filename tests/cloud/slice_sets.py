"""Sets of slices on the mesh of every path: fanned out by `split`, or made by hand and sent straight to a fan-in actor."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from asya.protocol import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cloud.deployed_cloud import DeployedCloud

SIZES = (1, 2, 10, 200) if os.environ.get("ASYA_FULL_SIZE") else (1, 2, 10)
"""Items of a set, in every way that a set can come about and end; in full size by `make test-full`."""

ERROR_MESSAGE = "no such airport"
_CHUNK_SIZE = 10


def fan_out(cloud: DeployedCloud, payload: dict[str, Any], *ahead: str) -> str:
    """Start a task at split; its id."""
    origin = str(uuid4())
    route = {"prev": [], "curr": "split", "next": list(ahead) or [payload.get("at", "x-fan-in"), "publish"]}
    cloud.send_raw("split", json.dumps({"id": origin, "route": route, "payload": payload}))
    return origin


def number_items(count: int) -> list[Any]:
    """So many items."""
    return [{"n": n} for n in range(count)]


def scored_items(count: int) -> list[Any]:
    """What comes back of them."""
    return [{"scored": n * 10, "text": ""} for n in range(count)]


def slice_message(origin: str, count: int, index: int, *, at: str = "x-fan-in", said: str | int | None = None) -> str:
    """The message that a slice is when it comes to its fan-in actor. Slice 0 is the origin, `count` are all."""
    header = {"actor": at, "set_id": f"set-{origin}", "origin_id": origin, "slice_count": count, "slice_index": index}
    envelope = {
        "id": origin if index == 0 else f"{origin}-{index}",
        "route": {"prev": ["split"], "curr": at, "next": ["publish"] if index == 0 else []},
        "headers": {"x-asya-fan-in": {**header, "aggregation_key": "/r"}},
        "payload": {"said": index if said is None else said},
    }
    return json.dumps(envelope)


def slice_messages(origin: str, items: int, *, at: str = "x-fan-in") -> list[str]:
    """All slices of a set, the origin first."""
    return [slice_message(origin, items + 1, index, at=at) for index in range(items + 1)]


def merged_payload(items: int) -> Any:
    """What such a set is merged into."""
    return {"said": 0, "r": [{"said": number} for number in range(1, items + 1)]}


def send_all(cloud: DeployedCloud, actor: str, bodies: Sequence[str]) -> None:
    """Put messages onto an actor's queue in this order, as fast as can be."""
    sqs = cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=names.queue_name(cloud.mesh.connection.namespace, actor))["QueueUrl"]
    for start in range(0, len(bodies), _CHUNK_SIZE):
        some = bodies[start : start + _CHUNK_SIZE]
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(some)]
        assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == len(some)


def shuffled(bodies: Sequence[str]) -> list[str]:
    """The same, in an order that nobody had in mind, and that is the same each time."""
    return random.Random(len(bodies)).sample(bodies, len(bodies))
