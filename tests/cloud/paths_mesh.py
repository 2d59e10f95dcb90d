"""Envelopes on the mesh of every path: how they are sent, and what their handlers envelopes_with_note of them."""

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

LOST_PAYLOADS = {"crash": {"how": "exit"}, "deaf": {"how": "deaf"}}
"""Who comes back only when the message has been invisible for as long as its function might have run: a minute and a half."""

OVERDUE_PAYLOAD = {"seconds": 90}
"""The payload of who takes longer than its deadline lets it."""


@dataclass(frozen=True)
class NewEnvelope:
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


def send(cloud: DeployedCloud, journey: NewEnvelope) -> str:
    """Put it onto the queue of its first actor; the envelope's id."""
    cloud.send_raw(journey.route[0], journey.body())
    return journey.envelope_id


def send_slow_envelopes(cloud: DeployedCloud) -> None:
    """Send what ends after a minute or more, so that it goes by while others are tested (`test_slow_paths.py`)."""
    for envelope_id, payload in LOST_PAYLOADS.items():
        cloud.mesh.upload(f"notes/{envelope_id}/sent-{time.time_ns()}", b"here")
        send(cloud, NewEnvelope(["deaf"], payload, envelope_id=envelope_id))
    deadline = format_time(datetime.now(UTC) + timedelta(seconds=55))
    send(cloud, NewEnvelope(["once"], OVERDUE_PAYLOAD, status={"deadline_at": deadline}, envelope_id="overdue"))


@dataclass(frozen=True)
class FinalState:
    """What became of an envelope."""

    task: TaskView
    envelope: dict[str, Any]

    @property
    def payload(self) -> Any:
        return self.envelope["payload"]

    @property
    def status_and_reason(self) -> tuple[str, str | None]:
        """Status and reason."""
        return self.task.status, self.task.reason

    @property
    def error(self) -> tuple[str, str]:
        """Type and message of the error."""
        assert self.task.error is not None
        return self.task.error.type, self.task.error.message


def wait_for_final_state(cloud: DeployedCloud, envelope_id: str) -> FinalState:
    """The task and the stored envelope, once it has ended. Of what went straight to x-sump there is only that one's copy."""
    copy = f"{cloud.mesh.connection.results.uri}sump/{safe_segment(envelope_id)}.json"

    def look() -> FinalState | None:
        task = cloud.wait_for_end(envelope_id)  # looked at again: where the result lies may be told after the end
        body = cloud.mesh.fetch(task.result_uri or copy)
        return FinalState(task, json.loads(body)) if body is not None else None

    return until(look, f"{envelope_id} to be stored")


@dataclass(frozen=True)
class Note:
    """One call of a handler: what it envelopes_with_note, and when (seconds)."""

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


def envelopes_with_note(cloud: DeployedCloud, what: str) -> list[str]:
    """The envelopes of which handlers envelopes_with_note this: each as often as they did."""
    place = cloud.mesh.connection.data
    prefix = f"{place.prefix}notes/"
    pages = cloud.client("s3").get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=prefix)
    keys = [each["Key"].removeprefix(prefix) for page in pages for each in page.get("Contents", [])]
    return [key.partition("/")[0] for key in keys if key.partition("/")[2].startswith(f"{what}-")]


def note_intervals(cloud: DeployedCloud, envelope_id: str) -> list[float]:
    """Seconds between an envelope's notes."""
    times = [note.at for note in notes(cloud, envelope_id)]
    return [after - before for before, after in pairwise(times)]
