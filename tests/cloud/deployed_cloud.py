"""A mesh on a local cloud, used with the operator's key as the `asya` command does."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from asya.capabilities.clock.steps import NAMED
from asya.capabilities.legacy.envelopes import read_envelope
from asya.client.errors import MeshError
from asya.protocol import names
from asya.protocol.codec import encode
from asya.protocol.task_key import sealed
from asya.senders.aws.key_items import KeyItems
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange
from asya_local.account import aws_client, read_keys
from asya_local.state_folder import StateFolder
from tests.cloud.environment import environment, now
from tests.flights_sample import write_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from asya.client.mesh_client import MeshClient
    from asya.tasks.view import TaskView

T = TypeVar("T")
TIMEOUT_SECONDS = 900.0
"""How long a test waits for a condition; enough for a slow machine."""


@dataclass(frozen=True)
class DeployedCloud:
    """A deployed mesh that receives messages."""

    mesh: MeshClient
    state: Path
    _clients: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """boto3 clients by name; creating one takes longer than most calls."""

    def send_raw(self, actor: str, text: str) -> str:
        """Sends any text to an actor's queue; returns the id of the SQS message."""
        sqs = self._cached_client("operator:sqs", self.mesh.connection.sqs)
        url = sqs.get_queue_url(QueueName=names.queue_name(self.mesh.connection.namespace, actor))["QueueUrl"]
        return str(sqs.send_message(QueueUrl=url, MessageBody=text)["MessageId"])

    def send_as_mesh(self, actor: str, text: str) -> None:
        """Sends what a function of the mesh without code of users might send, with the key of its task."""
        sqs, namespace = self.mesh_sqs(), self.mesh.connection.namespace
        url = sqs.get_queue_url(QueueName=names.queue_name(namespace, actor))["QueueUrl"]
        secret = KeyItems(self.client("dynamodb"), names.table_name(namespace, "sink")).secret()
        sqs.send_message(QueueUrl=url, MessageBody=encode(sealed(read_envelope(text.encode()), secret)).decode())

    def mesh_sqs(self) -> Any:
        """A client whose messages count as those of the mesh: the deployer, listed as a role."""

        def create() -> Any:
            user_id = str(self.client("sts").get_caller_identity()["UserId"])
            items = RoleItems(self.client("dynamodb"), names.table_name(self.mesh.connection.namespace, "sink"))
            items.write(ListChange({user_id: names.GATEWAY_API}, frozenset()), now())
            return self.client("sqs")

        return self._cached_client("mesh:sqs", create)

    def message_count(self, queue: str) -> int:
        """Counts the visible and the in-flight messages of a queue."""
        sqs = self._cached_client("operator:sqs", self.mesh.connection.sqs)
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return int(counts["ApproximateNumberOfMessages"]) + int(counts["ApproximateNumberOfMessagesNotVisible"])

    def task(self, envelope_id: str) -> TaskView | None:
        """Reads the task; None if it is unknown, or if the gateway of a busy machine times out."""
        try:
            return self.mesh.task(envelope_id)
        except MeshError as error:
            if "did not answer" not in str(error) and "answered 5" not in str(error):
                raise
            return None

    def wait_for_end(self, envelope_id: str, seconds: float = TIMEOUT_SECONDS) -> TaskView:
        """Waits until the task has ended, and returns it."""

        def poll() -> TaskView | None:
            task = self.task(envelope_id)
            return task if task is not None and task.is_terminal else None

        return until(poll, f"task {envelope_id} to end", seconds)

    def client(self, service: str) -> Any:
        """A boto3 client with the deployer's key, for calls that the operator may not make."""

        def create() -> Any:
            key = read_keys(StateFolder.at(self.state).keys)["deployer"]
            return aws_client(service, str(self.mesh.connection.endpoint_url), key)

        return self._cached_client(service, create)

    def run_scheduled(self, function: str) -> None:
        """Runs a function of the mesh, or a step of its clock, once in place of its schedule; IAM applies to what it calls."""
        self.invoke_scheduled(function)

    def invoke_scheduled(self, function: str) -> str:
        """Runs a function of the mesh or a step of its clock once, and returns the last lines that it has logged."""
        runner = names.runner_of(function)
        payload = json.dumps({NAMED: [function]} if runner != function else {})
        name = names.function_name(self.mesh.connection.namespace, runner)
        response = self.client("lambda").invoke(FunctionName=name, LogType="Tail", Payload=payload)
        assert "FunctionError" not in response, response["Payload"].read()
        # The local cloud gives none if the function has logged nothing.
        return base64.b64decode(response.get("LogResult", "")).decode()

    def _cached_client(self, name: str, create: Callable[[], Any]) -> Any:
        if name not in self._clients:
            self._clients[name] = create()
        return self._clients[name]

    def dead_letters(self) -> dict[str, int]:
        """Counts the dead letters by actor; actors without any are left out."""
        prefix = names.queue_name(self.mesh.connection.namespace, "")
        queues = [url.rpartition("/")[2] for url in self.client("sqs").list_queues(QueueNamePrefix=prefix)["QueueUrls"]]
        counts = {queue: self.message_count(queue) for queue in queues if queue.endswith("-dlq")}
        return {queue.removeprefix(prefix).removesuffix("-dlq"): count for queue, count in counts.items() if count}

    def wait_for_result(self, envelope_id: str) -> tuple[TaskView, Any]:
        """Waits for the task's end and its result, which may be reported later; returns both."""

        def poll() -> TaskView | None:
            task = self.wait_for_end(envelope_id)
            return task if task.result_uri is not None else None

        task = until(poll, f"the address of the result of {envelope_id}")
        return task, self.envelope(task)

    def envelope(self, task: TaskView) -> Any:
        """Reads the envelope that x-sink stored; the task must have a `result_uri`."""
        assert task.result_uri is not None, task
        body = self.mesh.fetch(task.result_uri)
        assert body is not None, task.result_uri
        return json.loads(body)

    def put_dataset(self, folder: Path, flights_per_month: int, prefix: str) -> dict[str, str]:
        """Uploads a sample of the flights to raw/{prefix}/ and returns the payload with its references.

        `folder` gets the same files under the same references.
        """
        payload = {}
        for table, reference in write_dataset(folder, flights_per_month).items():
            payload[table] = str(PurePosixPath("raw", prefix, PurePosixPath(reference).name))
            copy = folder / payload[table]
            copy.parent.mkdir(parents=True, exist_ok=True)
            (folder / reference).rename(copy)
            self.mesh.upload(payload[table], copy.read_bytes())
        return payload


def until(poll: Callable[[], T | None], description: str, seconds: float = TIMEOUT_SECONDS) -> T:
    """Polls until the result is not None, and returns it; fails after `seconds`.

    The longer it waits, the less often it polls: each poll takes processor time from what it waits for.
    """
    began = environment().monotonic()
    while (result := poll()) is None:
        waited = environment().monotonic() - began
        assert waited < seconds, f"waited {seconds:.0f} s for {description}"
        environment().sleep(min(max(0.1, waited / 10), 1.0))
    return result
