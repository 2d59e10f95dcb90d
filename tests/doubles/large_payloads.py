"""Large payloads behind claim checks: made when they are fetched, so that the test itself holds none of them."""

import hashlib
import io
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message


def payload_key(number: int, actor: str = "infer") -> str:
    """The key of a payload for an actor."""
    return f"payloads/{actor}/{number:02d}/{number:064d}.json"


@dataclass
class LargePayloads(MemoryS3):
    """A bucket with `count` payloads of `size` bytes, that keeps no object.

    Attributes:
        actor: the reader of the payloads.
        fetched: called with each fetch of a payload, with its number.
    """

    size: int = 0
    actor: str = "infer"
    fetched: Callable[[int], None] = field(default=lambda number: None)

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """Make the payload that the key names."""
        if not Key.startswith("payloads/"):
            return super().get_object(Bucket=Bucket, Key=Key)

        def make() -> dict[str, Any]:
            number = int(Key.rpartition("/")[2].removesuffix(".json"))
            self.fetched(number)
            return {"Body": io.BytesIO(self._content(number))}

        return self._call(Bucket, f"GetObject {Key}", make)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Take an object and forget it."""
        return self._call(Bucket, f"PutObject {Key}", dict)

    def messages(self, count: int, *, first: int = 0, **members: Any) -> list[bytes]:
        """Messages with the ids `env-{first}` and so on; each one refers to a payload of its own."""
        return [self._message(first + number, members) for number in range(count)]

    def _message(self, number: int, members: dict[str, Any]) -> bytes:
        digest = hashlib.sha256(self._content(number)).hexdigest()
        reference = {"key": payload_key(number, self.actor), "size": self.size, "sha256": digest}
        headers = {"x-asya-payload-ref": reference} | members.get("headers", {})
        return message(**({"id": f"env-{number}", "payload": None} | members | {"headers": headers}))

    def _content(self, number: int) -> bytes:
        return b'"' + bytes([ord("a") + number]) * (self.size - 2) + b'"'


def peak_of(call: Callable[[], object]) -> int:
    """The bytes that a call needs at most, beyond those that were allocated before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
