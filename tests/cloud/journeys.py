"""Envelopes on the mesh of every path: how they are sent, and what their handlers noted of them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from asya.protocol.keys import safe_segment
from asya.protocol.times import format_time
from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.tasks.view import TaskView

LOST = {"crash": {"how": "exit"}, "deaf": {"how": "deaf"}}
"""Who comes back only when the message has been invisible for as long as its function might have run: a minute and a half."""

OVERDUE = {"seconds": 90}
"""The payload of who takes longer than its deadline lets it."""


@dataclass(frozen=True)
class Journey:
    """An envelope to be sent."""

    route: list[str]
    payload: Any
    headers: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    envelope_id: str = field(default_factory=lambda: str(uuid4()))

    def body(self) -> str:
        """The message."""
        route = {"prev": [], "curr": self.route[0], "next": self.route[1:]}
        envelope = {"id": self.envelope_id, "route": route, "headers": dict(self.headers), "status": dict(self.status)}
        return json.dumps({**envelope, "payload": self.payload})


def send(cloud: DeployedCloud, journey: Journey) -> str:
    """Put it onto the queue of its first actor; the envelope's id."""
    cloud.send_raw(journey.route[0], journey.body())
    return journey.envelope_id


def send_slow_ones(cloud: DeployedCloud) -> None:
    """Send what ends after a minute or more, so that it goes by while others are tested (`test_slow_paths.py`)."""
    for envelope_id, payload in LOST.items():
        cloud.mesh.upload(f"notes/{envelope_id}/sent-{time.time_ns()}", b"here")
        send(cloud, Journey(["deaf"], payload, envelope_id=envelope_id))
    deadline = format_time(datetime.now(UTC) + timedelta(seconds=55))
    send(cloud, Journey(["once"], OVERDUE, status={"deadline_at": deadline}, envelope_id="overdue"))


@dataclass(frozen=True)
class End:
    """What became of an envelope."""

    task: TaskView
    envelope: dict[str, Any]

    @property
    def payload(self) -> Any:
        return self.envelope["payload"]

    @property
    def why(self) -> tuple[str, str | None]:
        """Status and reason."""
        return self.task.status, self.task.reason

    @property
    def error(self) -> tuple[str, str]:
        """Type and message of the error."""
        assert self.task.error is not None
        return self.task.error.type, self.task.error.message


def end_of(cloud: DeployedCloud, envelope_id: str) -> End:
    """The task and the stored envelope, once it has ended. Of what went straight to x-sump there is only that one's copy."""
    copy = f"{cloud.mesh.connection.results.uri}sump/{safe_segment(envelope_id)}.json"

    def look() -> End | None:
        task = cloud.ended(envelope_id)  # looked at again: where the result lies may be told after the end
        body = cloud.mesh.fetch(task.result_uri or copy)
        return End(task, json.loads(body)) if body is not None else None

    return until(look, f"{envelope_id} to be stored")


@dataclass(frozen=True)
class Note:
    """One call of a handler: what it noted, and when (seconds)."""

    what: str
    at: float


def notes(cloud: DeployedCloud, envelope_id: str) -> list[Note]:
    """The notes that handlers left of an envelope, oldest first."""
    place = cloud.mesh.connection.data
    prefix = f"{place.prefix}notes/{envelope_id}/"
    found = cloud.client("s3").list_objects_v2(Bucket=place.bucket, Prefix=prefix).get("Contents", [])
    named = [
        each["Key"].removeprefix(prefix).rpartition("-") for each in found if "-" in each["Key"].removeprefix(prefix)
    ]
    return sorted((Note(what, int(at) / 1e9) for what, _, at in named), key=lambda note: note.at)


def noted(cloud: DeployedCloud, what: str) -> list[str]:
    """The envelopes of which handlers noted this: each as often as they did."""
    place = cloud.mesh.connection.data
    prefix = f"{place.prefix}notes/"
    pages = cloud.client("s3").get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
    keys = [each["Key"].removeprefix(prefix) for page in pages for each in page.get("Contents", [])]
    return [key.partition("/")[0] for key in keys if key.partition("/")[2].startswith(f"{what}-")]


def pauses(cloud: DeployedCloud, envelope_id: str) -> list[float]:
    """Seconds between an envelope's notes."""
    times = [note.at for note in notes(cloud, envelope_id)]
    return [after - before for before, after in pairwise(times)]
