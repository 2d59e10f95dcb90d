"""What an earlier version wrote, in the doubles: tables, bucket, messages, texts."""

import io
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.response import StreamingBody

from asya.testing.dynamo.tables import Index, MemoryDynamo, Table
from tests.doubles.dynamo import TASK_INDEXES
from tests.doubles.s3 import FakeS3

NAMESPACE = "shop"
BUCKET = "asya-shop-123456789012-eu-west-1"
RESULTS_URI = f"s3://{BUCKET}/results/"
KINDS = ("tasks", "fan-in", "pending", "sink", "hops", "breaker")
_INDEXES = {
    "tasks": {name: Index(partition, sort, included) for name, (partition, sort, included) in TASK_INDEXES.items()},
    "fan-in": {"open": Index("open_in", "due_at", ("actor",))},
}


class ListedS3(FakeS3):
    """Buckets that can be listed, and whose bodies are streams."""

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Read, as a stream."""
        content = super().get_object(Bucket=Bucket, Key=Key)["Body"].read()
        return {"Body": StreamingBody(io.BytesIO(content), len(content)), "ContentLength": len(content)}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """How large it is."""
        super().head_object(Bucket=Bucket, Key=Key)
        return {"ContentLength": len(self.objects[Bucket, Key])}

    def get_paginator(self, operation: str) -> "ListedS3":
        """Listings, each in one page."""
        assert operation == "list_objects_v2"
        return self

    def paginate(
        self,
        *,
        Bucket: str,  # noqa: N803
        Prefix: str,  # noqa: N803
        Delimiter: str = "",  # noqa: N803
        StartAfter: str = "",  # noqa: N803
    ) -> Iterator[dict[str, Any]]:
        """The keys below a prefix, or what lies between it and the next delimiter."""
        keys = sorted(key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix))
        folders: dict[str, None] = {}
        contents = []
        for key in (key for key in keys if key > StartAfter):
            head, found, _ = key.removeprefix(Prefix).partition(Delimiter) if Delimiter else (key, "", "")
            if found:
                folders[Prefix + head + Delimiter] = None
            else:
                contents.append({"Key": key, "Size": len(self.objects[Bucket, key])})
        yield {"Contents": contents, "CommonPrefixes": [{"Prefix": folder} for folder in folders]}


@dataclass
class Recording:
    """One recorded state.

    Attributes:
        messages: bodies by the name of their queue, without namespace.
        texts: what clients hold: cursors, ids of events, tokens.
    """

    dynamodb: MemoryDynamo
    s3: ListedS3
    messages: dict[str, list[bytes]]
    texts: dict[str, str]

    @property
    def objects(self) -> dict[str, bytes]:
        """The objects of the one bucket, by key."""
        return {key: body for (_, key), body in self.s3.objects.items()}

    def metadata(self, key: str) -> dict[str, str]:
        """An object's metadata."""
        return self.s3.metadata[BUCKET, key]

    def items(self, kind: str) -> list[dict[str, Any]]:
        """The items of a table."""
        return [dict(item) for item in self.dynamodb.tables[f"asya-{NAMESPACE}-{kind}"].items.values()]


def empty() -> Recording:
    """Tables and a bucket without anything in them."""
    tables = {f"asya-{NAMESPACE}-{kind}": Table(_INDEXES.get(kind, {})) for kind in KINDS}
    return Recording(MemoryDynamo(tables), ListedS3(), {}, {})


def load(name: str) -> Recording:
    """What is recorded under a name."""
    content = json.loads((Path(__file__).parent / f"{name}.json").read_text())
    found = empty()
    for kind, items in content["tables"].items():
        for item in items:
            found.dynamodb.put_item(
                TableName=f"asya-{NAMESPACE}-{kind}", Item={key: _value(value) for key, value in item.items()}
            )
    for key, each in content["objects"].items():
        found.s3.put_object(Bucket=BUCKET, Key=key, Body=_bytes(each["body"]), Metadata=each["metadata"])
    found.messages |= {queue: [body.encode() for body in bodies] for queue, bodies in content["messages"].items()}
    found.texts |= content["texts"]
    return found


def _value(value: dict[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    if kind == "B":
        return {"B": _bytes(content)}
    if kind == "L":
        return {"L": [_value(one) for one in content]}
    return value


def _bytes(content: str | dict[str, str]) -> bytes:
    """Text as it is, anything else in Base64."""
    return content.encode() if isinstance(content, str) else b64decode(content["base64"])
