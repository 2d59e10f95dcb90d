"""Sends envelopes to the paths mesh, and reads their final states and the notes of its handlers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from asya.protocol.keys import safe_segment
from asya.protocol.times import format_time
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.environment import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.tasks.view import TaskView

LOST_PAYLOADS = {"crash": {"how": "exit"}, "deaf": {"how": "deaf"}}
"""Payloads that lose their process; SQS delivers them again after the visibility timeout of 90 seconds."""

OVERDUE_PAYLOAD = {"seconds": 90}
"""The payload of a handler call that exceeds the deadline."""


@dataclass(frozen=True)
class NewEnvelope:
    """An envelope to send."""

    route: list[str]
    payload: Any
    headers: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    envelope_id: str = field(default_factory=lambda: str(uuid4()))

    def body(self) -> str:
        """The body of the SQS message."""
        route = {"prev": [], "curr": self.route[0], "next": self.route[1:]}
        envelope = {"id": self.envelope_id, "route": route, "headers": dict(self.headers), "status": dict(self.status)}
        return json.dumps({**envelope, "payload": self.payload})


def send(cloud: DeployedCloud, envelope: NewEnvelope) -> str:
    """Sends the envelope to its first actor; returns its id. One with a phase comes from the mesh, which alone may say so."""
    deliver = cloud.send_as_mesh if "phase" in envelope.status else cloud.send_raw
    deliver(envelope.route[0], envelope.body())
    return envelope.envelope_id


def note_sent(cloud: DeployedCloud, envelope_id: str) -> None:
    """Writes a note before an envelope is sent."""
    cloud.mesh.upload(f"notes/{envelope_id}/sent-{time.time_ns()}", b"here")


def send_slow_envelopes(cloud: DeployedCloud) -> None:
    """Sends the envelopes of `test_slow_paths.py`, which end after a minute or more."""
    for envelope_id, payload in LOST_PAYLOADS.items():
        note_sent(cloud, envelope_id)
        send(cloud, NewEnvelope(["deaf"], payload, envelope_id=envelope_id))
    deadline = format_time(now() + timedelta(seconds=55))
    send(cloud, NewEnvelope(["once"], OVERDUE_PAYLOAD, status={"deadline_at": deadline}, envelope_id="overdue"))


@dataclass(frozen=True)
class FinalState:
    """The task and the stored envelope at the end of a route."""

    task: TaskView
    envelope: dict[str, Any]

    @property
    def payload(self) -> Any:
        return self.envelope["payload"]

    @property
    def status_and_reason(self) -> tuple[str, str | None]:
        """Status and reason of the task."""
        return self.task.status, self.task.reason

    @property
    def error(self) -> tuple[str, str]:
        """Type and message of the task's error."""
        assert self.task.error is not None
        return self.task.error.type, self.task.error.message


def wait_for_final_state(cloud: DeployedCloud, envelope_id: str) -> FinalState:
    """Waits for the end of a task; reads the envelope from the copy of x-sump if x-sink has none."""
    copy = f"{cloud.mesh.connection.results.uri}sump/{safe_segment(envelope_id)}.json"

    def poll() -> FinalState | None:
        task = cloud.wait_for_end(envelope_id)  # read again, because the address may be reported after the end
        body = cloud.mesh.fetch(task.result_uri or copy)
        return FinalState(task, json.loads(body)) if body is not None else None

    return until(poll, f"{envelope_id} to be stored")


@dataclass(frozen=True)
class Note:
    """A note of a handler call."""

    name: str
    at: float
    """Seconds since the epoch."""


def notes(cloud: DeployedCloud, envelope_id: str) -> list[Note]:
    """Reads the notes of an envelope, oldest first."""
    data = cloud.mesh.connection.data
    prefix = f"{data.prefix}notes/{envelope_id}/"
    objects = cloud.client("s3").list_objects_v2(Bucket=data.bucket, Prefix=prefix).get("Contents", [])
    keys = [each["Key"].removeprefix(prefix) for each in objects]
    parts = [key.rpartition("-") for key in keys if "-" in key]
    return sorted((Note(name, int(nanoseconds) / 1e9) for name, _, nanoseconds in parts), key=lambda note: note.at)


def envelopes_with_note(cloud: DeployedCloud, name: str) -> list[str]:
    """The ids of the envelopes with a note of this name, once per note."""
    data = cloud.mesh.connection.data
    prefix = f"{data.prefix}notes/"
    pages = cloud.client("s3").get_paginator("list_objects_v2").paginate(Bucket=data.bucket, Prefix=prefix)
    keys = [each["Key"].removeprefix(prefix) for page in pages for each in page.get("Contents", [])]
    return [key.partition("/")[0] for key in keys if key.partition("/")[2].startswith(f"{name}-")]


def note_intervals(cloud: DeployedCloud, envelope_id: str) -> list[float]:
    """The seconds between successive notes of an envelope."""
    times = [note.at for note in notes(cloud, envelope_id)]
    return [after - before for before, after in pairwise(times)]
