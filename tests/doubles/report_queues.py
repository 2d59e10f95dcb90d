"""Messages of the report queues, an hour after the reports of `tests.doubles.tasks`, and what their consumer wrote."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec

from asya.function.lambdas.environment import RealEnvironment
from tests.doubles.mesh_world import MeshWorld, sqs_event
from tests.doubles.tasks import at

NOW = at(3600)


class Clock(RealEnvironment):
    """An hour after the reports of the tests."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time


def foreign(world: MeshWorld, report: object) -> Any:
    """A report for the gateway of the world."""
    return msgspec.json.decode(msgspec.json.encode(report)) | {"gateway_url": world.gateway.url}


def body(*reports: object) -> str:
    return msgspec.json.encode(reports).decode()


def batch(
    queue: str, *bodies: str, age: float = 1.0, now: datetime = NOW, sender: str | None = None, **more: Any
) -> dict[str, Any]:
    """The event of a report queue whose messages have this age in seconds, of a sender who may report about all."""
    sender = sender or ("AROASINK" if queue == "x-ends" else "AROACOMPLETION")
    sent = str(int((now - timedelta(seconds=age)).timestamp() * 1000))
    made = sqs_event(*bodies, **more)
    for record in made["Records"]:
        record["eventSourceARN"] = f"arn:aws:sqs:eu-west-1:123456789012:asya-shop-{queue}"
        record["attributes"] |= {"SentTimestamp": sent, "SenderId": f"{sender}:asya-shop-session"}
    return made


def items(world: MeshWorld) -> dict[tuple[str, str], Any]:
    return {
        (item["pk"]["S"], item["sk"]["S"]): item for item in world.dynamodb.tables["asya-shop-tasks"].items.values()
    }


def record(world: MeshWorld, task_id: str = "t") -> Any:
    return items(world).get((task_id, "record"))


def refused(world: MeshWorld) -> list[Any]:
    return [json.loads(world.s3.content(key)) for key in world.s3.keys("reports/refused/")]
