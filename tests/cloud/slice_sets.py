"""Sets of slices for the paths mesh: fanned out by `split`, or sent straight to a fan-in actor."""

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
"""The numbers of items in the tested sets; `make test-full` adds a large one."""

HEAVY_ITEMS = 5_000 if os.environ.get("ASYA_FULL_SIZE") else 40
"""The number of items of 50 KB in the heavy set; in full size, the largest set that a fan-out makes."""

ERROR_MESSAGE = "no such airport"
_CHUNK_SIZE = 10


def fan_out(cloud: DeployedCloud, payload: dict[str, Any], *ahead: str) -> str:
    """Starts a task at split and returns its id; `ahead` is the rest of its route."""
    origin = str(uuid4())
    route = {"prev": [], "curr": "split", "next": list(ahead) or [payload.get("at", "x-fan-in"), "publish"]}
    cloud.send_raw("split", json.dumps({"id": origin, "route": route, "payload": payload}))
    return origin


def number_items(count: int) -> list[Any]:
    """Items for split."""
    return [{"n": n} for n in range(count)]


def scored_items(count: int) -> list[Any]:
    """The results of score for `number_items(count)`."""
    return [{"scored": n * 10, "text": ""} for n in range(count)]


def slice_message(origin: str, count: int, index: int, *, at: str = "x-fan-in", value: str | int | None = None) -> str:
    """The message of a slice at its fan-in actor.

    Slice 0 is the origin, and `count` includes it. The payload holds `value`, which defaults to the index.
    """
    header = {"actor": at, "set_id": f"set-{origin}", "origin_id": origin, "slice_count": count, "slice_index": index}
    envelope = {
        "id": origin if index == 0 else f"{origin}-{index}",
        "route": {"prev": ["split"], "curr": at, "next": ["publish"] if index == 0 else []},
        "headers": {"x-asya-fan-in": {**header, "aggregation_key": "/r"}},
        "payload": {"value": index if value is None else value},
    }
    return json.dumps(envelope)


def slice_messages(origin: str, items: int, *, at: str = "x-fan-in") -> list[str]:
    """The messages of all slices of a set, the origin first."""
    return [slice_message(origin, items + 1, index, at=at) for index in range(items + 1)]


def heavy_slice_messages(origin: str, items: int) -> list[str]:
    """The messages of a set whose items have 50 KB each; the origin's route ends after its merge."""
    values = [0, *(f"{number}-{'x' * 50 * 1024}" for number in range(1, items + 1))]
    first, *others = (slice_message(origin, items + 1, index, value=value) for index, value in enumerate(values))
    return [json.dumps(json.loads(first) | {"route": {"prev": ["split"], "curr": "x-fan-in", "next": []}}), *others]


def merged_payload(items: int) -> Any:
    """The payload that the fan-in actor makes of `slice_messages`."""
    return {"value": 0, "r": [{"value": number} for number in range(1, items + 1)]}


def send_all(cloud: DeployedCloud, actor: str, bodies: Sequence[str]) -> None:
    """Sends messages to an actor in this order, ten per call, as a function of the mesh."""
    sqs = cloud.mesh_sqs()
    url = sqs.get_queue_url(QueueName=names.queue_name(cloud.mesh.connection.namespace, actor))["QueueUrl"]
    for start in range(0, len(bodies), _CHUNK_SIZE):
        chunk = bodies[start : start + _CHUNK_SIZE]
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(chunk)]
        assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == len(chunk)


def shuffled(bodies: Sequence[str]) -> list[str]:
    """Shuffles messages, in the same order on each run."""
    return random.Random(len(bodies)).sample(bodies, len(bodies))
