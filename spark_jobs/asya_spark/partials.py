"""Ephemeral messages of jobs (`protocol §7`, FLY), on their way to whoever looks on: gathered, and written as small files.

A job reaches S3 only, so the mesh reads them from there, a few seconds later. They are never part of a result.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

from asya_spark import strict_json
from asya_spark.clock import now_text
from asya_spark.files import Files

# A message is for looking on; more than this is data, and data belongs into the payload or into files.
MESSAGE_BYTES = 60 * 1024
WAITING = 1_000


class Partials:
    """Takes messages from any thread; a thread of ours writes them."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._said: dict[int | None, int] = {}
        self._written = 0
        self._dropped = 0

    def say(self, index: int | None, message: Mapping[str, Any]) -> None:
        """Take a message of a member of the run; without an index it is for all of them.

        Raises:
            ValueError: if it is no object, or too large.
            NotJsonError: if JSON cannot hold it.
        """
        if not isinstance(message, Mapping):
            raise ValueError(f"FLY takes an object, not a {type(message).__name__}")
        data = strict_json.encode(dict(message))
        if len(data) > MESSAGE_BYTES:
            raise ValueError(f"the message has {len(data)} bytes; {MESSAGE_BYTES} at most")
        with self._lock:
            sequence = self._said.get(index, 0)
            self._said[index] = sequence + 1
            if len(self._waiting) >= WAITING:
                self._dropped += 1
                return
            head = json.dumps({"index": index, "sequence": sequence, "at": now_text()})
            self._waiting.append(f'{head[:-1]},"data":{data}}}')

    def write(self) -> None:
        """Write what waits, as one file; by one thread at a time."""
        with self._lock:
            lines, self._waiting = self._waiting, []
            dropped, self._dropped = self._dropped, 0
        if dropped:
            print(f"asya_spark: {dropped} messages dropped: more than {WAITING} within a second", flush=True)
        if lines:
            content = "\n".join(lines) + "\n"
            self._files.write(f"{self._folder}fly-{self._written:06d}.jsonl", content.encode("ascii"))
            self._written += 1
