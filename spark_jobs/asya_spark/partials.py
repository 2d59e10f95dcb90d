"""Buffers the partials of jobs (`protocol §7`, FLY) and writes them as small files.

A job reaches only S3, so the mesh reads the files from there, a few seconds later. Partials are not part of a result.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

from asya_spark import strict_json
from asya_spark.clock import now_text
from asya_spark.files import Files

# Larger values are data and belong into the payload or into files.
PARTIAL_BYTES = 60 * 1024
BUFFER_LIMIT = 1_000


class Partials:
    """A buffer that any thread adds to and the heartbeat thread writes."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = threading.Lock()
        self._buffer: list[str] = []
        self._sequences: dict[int | None, int] = {}
        self._written = 0
        self._dropped = 0

    def add(self, index: int | None, message: Mapping[str, Any]) -> None:
        """Adds a partial of a member; without an index it is for all members.

        Raises:
            ValueError: if the message is no object or is too large.
            NotJsonError: if JSON cannot hold the message.
        """
        if not isinstance(message, Mapping):
            raise ValueError(f"FLY takes an object, not a {type(message).__name__}")
        data = strict_json.encode(dict(message))
        if len(data) > PARTIAL_BYTES:
            raise ValueError(f"the partial has {len(data)} bytes; {PARTIAL_BYTES} at most")
        with self._lock:
            sequence = self._sequences.get(index, 0)
            self._sequences[index] = sequence + 1
            if len(self._buffer) >= BUFFER_LIMIT:
                self._dropped += 1
                return
            head = json.dumps({"index": index, "sequence": sequence, "at": now_text()})
            self._buffer.append(f'{head[:-1]},"data":{data}}}')

    def write(self) -> None:
        """Writes the buffer as one file; only one thread may call it at a time."""
        with self._lock:
            lines, self._buffer = self._buffer, []
            dropped, self._dropped = self._dropped, 0
        if dropped:
            print(f"asya_spark: {dropped} partials dropped: more than {BUFFER_LIMIT} within a second", flush=True)
        if lines:
            content = "\n".join(lines) + "\n"
            self._files.write(f"{self._folder}fly-{self._written:06d}.jsonl", content.encode("ascii"))
            self._written += 1
