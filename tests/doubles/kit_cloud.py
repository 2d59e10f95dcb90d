"""The test kit in the place of a deployed cloud: tests of a deployed mesh run on it as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from asya.protocol import names
from asya.tasks.view import TaskView
from asya.testing.services.functions import BUCKET
from asya.testing.services.roles import role_id
from tests.cloud.deployed_cloud import DeployedCloud

if TYPE_CHECKING:
    from pathlib import Path

    from asya.testing import Mesh

DATA = "the data"
RESULTS = SimpleNamespace(uri=f"s3://{BUCKET}/results/", bucket=BUCKET, prefix="results/")


@dataclass(frozen=True)
class KitMesh:
    """What tests use of `MeshClient`."""

    kit: Mesh

    @property
    def connection(self) -> Any:
        data = SimpleNamespace(bucket=DATA, prefix="")
        return SimpleNamespace(data=data, results=RESULTS, namespace=self.kit._cloud.table.namespace)

    def task(self, envelope_id: str) -> TaskView | None:
        return self.kit.ask("GET", f"/api/v1/mesh/{envelope_id}", TaskView, or_none=True)

    def fetch(self, uri: str) -> bytes | None:
        return self.kit.objects.get(uri.removeprefix(f"s3://{BUCKET}/"))

    def upload(self, reference: str, body: bytes) -> None:
        path = self.kit.data / reference
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


@dataclass(frozen=True)
class KitS3:
    """What tests use of the S3 client."""

    kit: Mesh

    def list_objects_v2(self, *, Bucket: str, Prefix: str) -> dict[str, Any]:  # noqa: N803
        keys = self.kit.objects if Bucket == BUCKET else _files(self.kit.data)
        return {"Contents": [{"Key": key} for key in sorted(keys) if key.startswith(Prefix)]}


@dataclass(frozen=True)
class KitSqs:
    """What tests use of the SQS client."""

    kit: Mesh

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803
        return {"QueueUrl": QueueName}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:  # noqa: N803
        (name,) = AttributeNames
        assert name == "ApproximateNumberOfMessagesDelayed"
        queue = self.kit._cloud.queues.queues[QueueUrl]
        return {"Attributes": {name: str(sum(not message.receives for message in queue.messages))}}


@dataclass(frozen=True)
class KitCloud:
    """What tests use of `DeployedCloud`."""

    kit: Mesh

    @property
    def mesh(self) -> KitMesh:
        return KitMesh(self.kit)

    def client(self, service: str) -> Any:
        return {"s3": KitS3, "sqs": KitSqs}[service](self.kit)

    put_dataset = DeployedCloud.put_dataset

    def send_raw(self, actor: str, text: str) -> str:
        queue = names.queue_name(self.mesh.connection.namespace, actor)
        message_id = self.kit._cloud.queues.send(queue, text, sender=None, by="AIDATEST")
        self.kit._rest()
        return message_id

    def send_as_mesh(self, actor: str, text: str) -> None:
        self.kit._put(actor, text, f"{role_id(names.GATEWAY_API)}:session")
        self.kit.travel(minutes=1)

    def wait_for_end(self, envelope_id: str) -> TaskView:
        task = self.mesh.task(envelope_id)
        assert task is not None
        assert task.status in ("succeeded", "failed", "canceled"), task
        return task

    def wait_for_result(self, envelope_id: str) -> tuple[TaskView, Any]:
        task = self.wait_for_end(envelope_id)
        return task, self.envelope(task)

    def envelope(self, task: TaskView) -> Any:
        assert task.result_uri is not None, task
        return json.loads(self.mesh.fetch(task.result_uri) or b"")

    def message_count(self, queue: str) -> int:
        return len(self.kit._cloud.queues.queues[queue].messages)


def _files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
