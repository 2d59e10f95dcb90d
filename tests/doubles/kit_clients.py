"""Clients of the services of the test kit with the calls of boto3 that tests and commands make."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from asya import registry
from asya.capabilities.clock.steps import NAMED
from asya.protocol import names
from asya.testing.services.clients import Bucket, DynamoClient, S3Client
from asya.testing.services.process import Process
from asya.testing.services.queues import Queue, SqsClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from asya.testing import Mesh

OPERATOR_ID = "AIDATEST"
DATA_PREFIX = "data/"
"""The keys of the mesh's data, which the kit has in a folder."""


def client_of(kit: Mesh, service: str, sender_id: str = OPERATOR_ID) -> Any:
    """A client of somebody outside the mesh.

    Args:
        sender_id: whose messages it sends.
    """
    process, cloud = Process("outside", kit.cloud.simulation), kit.cloud
    match service:
        case "sqs":
            return Outside(kit, KitSqs(process, cloud.queues, sender_id))
        case "s3":
            objects = Objects(cloud.bucket.objects, kit.data)
            return Outside(kit, KitS3(process, Bucket(cloud.history, objects, cloud.bucket.metadata)))  # type: ignore[arg-type]
        case "dynamodb":
            return Outside(kit, DynamoClient(process, cloud.tables))
        case "lambda":
            return Outside(kit, KitLambda(kit))
    raise NotImplementedError(f"the test kit has no {service}")


@dataclass(frozen=True)
class Outside:
    """A client outside the mesh, which works during its calls."""

    kit: Mesh
    client: Any

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.client, name)
        if name == "exceptions":
            return member
        return lambda **request: self.kit.cloud.perform(lambda: member(**request))

    def get_paginator(self, action: str) -> Pages:
        return Pages(self, action)


@dataclass(frozen=True)
class Pages:
    """A paginator with one page."""

    client: Outside
    action: str

    def paginate(self, **request: Any) -> list[dict[str, Any]]:
        return [getattr(self.client, self.action)(**request)]


class KitSqs(SqsClient):
    """SQS, with the calls of operators."""

    def list_queues(self, *, QueueNamePrefix: str) -> dict[str, Any]:  # noqa: N803
        return {"QueueUrls": [f"https://sqs/{name}" for name in self.queues.queues if name.startswith(QueueNamePrefix)]}

    def list_queue_tags(self, *, QueueUrl: str) -> dict[str, Any]:  # noqa: N803
        return {}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:  # noqa: N803
        if list(AttributeNames) == ["VisibilityTimeout"]:
            return {
                "Attributes": {"VisibilityTimeout": str(self.queues.queues[QueueUrl.rpartition("/")[2]].visibility)}
            }
        return super().get_queue_attributes(QueueUrl=QueueUrl, AttributeNames=AttributeNames)

    def create_queue(self, *, QueueName: str) -> dict[str, Any]:  # noqa: N803
        self.queues.queues[QueueName] = Queue(QueueName, 30.0, None)
        return self.get_queue_url(QueueName=QueueName)


class Objects(MutableMapping[str, bytes]):
    """The objects of the mesh's bucket, and below `data/` the files of its data."""

    def __init__(self, objects: MutableMapping[str, bytes], data: Path) -> None:
        self._objects = objects
        self._data = data

    def __getitem__(self, key: str) -> bytes:
        path = self._path(key)
        if path is None:
            return self._objects[key]
        if not path.is_file():
            raise KeyError(key)
        return path.read_bytes()

    def __setitem__(self, key: str, body: bytes) -> None:
        path = self._path(key)
        if path is None:
            self._objects[key] = body
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def __delitem__(self, key: str) -> None:
        path = self._path(key)
        if path is None:
            del self._objects[key]
            return
        path.unlink()

    def __iter__(self) -> Iterator[str]:
        yield from self._objects
        for path in self._data.rglob("*"):
            if path.is_file():
                yield DATA_PREFIX + str(path.relative_to(self._data))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, key: str) -> Path | None:
        return self._data / key.removeprefix(DATA_PREFIX) if key.startswith(DATA_PREFIX) else None


class _Exceptions:
    NoSuchKey = ClientError


class KitS3(S3Client):
    """S3, with the calls of operators. All buckets are one."""

    exceptions = _Exceptions

    def list_objects_v2(self, *, Bucket: str, Prefix: str) -> dict[str, Any]:  # noqa: N803
        answer = self.list_objects(Bucket, Prefix, "", "")
        for item in answer.get("Contents", []):
            item["LastModified"] = datetime(2026, 11, 20, 9, tzinfo=UTC)
        return answer


@dataclass(frozen=True)
class KitLambda:
    """Lambda: invokes the scheduled functions, and steps of the clock that the event names."""

    kit: Mesh

    def invoke(self, *, FunctionName: str, Payload: bytes, LogType: str) -> dict[str, Any]:  # noqa: N803
        table = self.kit.cloud.table
        steps = json.loads(Payload).get(NAMED)
        for name in steps or registry.of(table).sweeps:
            if names.function_name(table.namespace, names.runner_of(name)) == FunctionName:
                self.kit.cloud.system.run(name)
        assert LogType == "Tail"
        # The lines of a run of the kit are in `Mesh.log`.
        return {"LogResult": b""}
