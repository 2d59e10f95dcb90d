"""A mesh on a local cloud, and what tests do with it: with its operator's key, as the `asya` command does."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from asya.protocol import names
from asya_cli.errors import CommandError
from asya_cli.progress.watch import TERMINAL
from asya_local.accounts import aws_client
from asya_local.keys import read_keys
from asya_local.state_folder import StateFolder
from tests.flights_sample import write_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from asya.tasks.view import TaskView
    from asya_cli.mesh_client import MeshClient

T = TypeVar("T")
TIMEOUT_SECONDS = 300.0
"""After which something is given up that a test waits for: no machine is so slow."""


@dataclass(frozen=True)
class DeployedCloud:
    """A mesh that takes messages."""

    mesh: MeshClient
    state: Path
    _clients: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """To be made once: that takes longer than most calls."""

    def send_raw(self, actor: str, text: str) -> str:
        """Put any text onto an actor's queue; returns the SQS message's id."""
        sqs = self._cached_client("the operator's sqs", self.mesh.connection.sqs)
        url = sqs.get_queue_url(QueueName=names.queue_name(self.mesh.connection.namespace, actor))["QueueUrl"]
        return str(sqs.send_message(QueueUrl=url, MessageBody=text)["MessageId"])

    def message_count(self, queue: str) -> int:
        """How many messages lie on a queue, waiting or taken."""
        sqs = self._cached_client("the operator's sqs", self.mesh.connection.sqs)
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]) + int(found["ApproximateNumberOfMessagesNotVisible"])

    def task(self, envelope_id: str) -> TaskView | None:
        """The task, if the status endpoint knows it, or could say so: on a busy machine it may be too slow for that."""
        try:
            return self.mesh.task(envelope_id)
        except CommandError as error:
            if "did not answer" not in str(error) and "answered 5" not in str(error):
                raise
            return None

    def wait_for_end(self, envelope_id: str) -> TaskView:
        """The task, once it has ended."""

        def look() -> TaskView | None:
            task = self.task(envelope_id)
            return task if task is not None and task.status in TERMINAL else None

        return until(look, f"task {envelope_id} to end")

    def client(self, service: str) -> Any:
        """A client of AWS's with the deployer's key, for what an operator may not do."""

        def make() -> Any:
            key = read_keys(StateFolder.at(self.state).keys)["deployer"]
            return aws_client(service, str(self.mesh.connection.endpoint_url), key)

        return self._cached_client(service, make)

    def _cached_client(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._clients:
            self._clients[name] = make()
        return self._clients[name]

    def dead_letters(self) -> dict[str, int]:
        """How many messages lie in which dead-letter queues: those that are not empty."""
        prefix = names.queue_name(self.mesh.connection.namespace, "")
        queues = [url.rpartition("/")[2] for url in self.client("sqs").list_queues(QueueNamePrefix=prefix)["QueueUrls"]]
        counts = {queue: self.message_count(queue) for queue in queues if queue.endswith("-dlq")}
        return {queue.removeprefix(prefix).removesuffix("-dlq"): count for queue, count in counts.items() if count}

    def wait_for_result(self, envelope_id: str) -> tuple[TaskView, Any]:
        """A task that ended, and the whole envelope that x-sink wrote; where that lies may be told after the end itself."""

        def look() -> TaskView | None:
            task = self.wait_for_end(envelope_id)
            return task if task.result_uri is not None else None

        task = until(look, f"what is stored of {envelope_id} to be told")
        return task, self.envelope(task)

    def envelope(self, task: TaskView) -> Any:
        """What x-sink wrote of a task that is known to be stored."""
        assert task.result_uri is not None, task
        body = self.mesh.fetch(task.result_uri)
        assert body is not None, task.result_uri
        return json.loads(body)

    def put_dataset(self, folder: Path, flights_per_month: int, prefix: str) -> dict[str, str]:
        """Put a sample of the flights into the mesh's data below raw/, under a prefix; returns the payload that names its files.

        The same files lie under `folder` afterwards, by the same references.
        """
        payload = {}
        for table, reference in write_dataset(folder, flights_per_month).items():
            payload[table] = str(PurePosixPath("raw", prefix, PurePosixPath(reference).name))
            copy = folder / payload[table]
            copy.parent.mkdir(parents=True, exist_ok=True)
            (folder / reference).rename(copy)
            self.mesh.upload(payload[table], copy.read_bytes())
        return payload


def until(condition: Callable[[], T | None], what: str, seconds: float = TIMEOUT_SECONDS) -> T:
    """Look for something until it is there."""
    deadline = time.monotonic() + seconds
    while (found := condition()) is None:
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.1)
    return found
