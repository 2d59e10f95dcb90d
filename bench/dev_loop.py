"""Seconds of the author's loop with `asya dev`: the start, and from a saved file to the result of its code.

`python -m bench.dev_loop [ROUNDS]`, by default 5.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from asya.client.connection import read_local
from asya.protocol import names

if TYPE_CHECKING:
    from asya.client.connection import Connection

_TIMEOUT = 300.0
_MESH = """
namespace: bench
code: handlers
jobs: jobs
actors:
  first: {handler: light.first}
  second: {handler: light.second}
  third: {handler: light.third}
  heavy: {spark: {job: heavy.count}}
tools:
  light: {description: Three light actors, route: [first, second, third]}
"""
_LIGHT = """
def first(payload): return {**payload, "version": VERSION}
def second(payload): return payload
def third(payload): return payload
"""
_HEAVY = """
def count(spark, payload):
    return {**payload, "version": VERSION, "rows": spark.range(100).groupBy().count().first()[0]}
"""


@dataclass(frozen=True)
class Change:
    """A file to save, the route that calls its code, and what the terminal says when it is loaded."""

    file: str
    text: str
    route: list[str]
    loaded: str


LIGHT = Change("handlers/light.py", _LIGHT, ["first", "second", "third"], "handlers loaded")
SPARK = Change("jobs/heavy.py", _HEAVY, ["heavy"], "jobs loaded")


@dataclass
class Author:
    """A folder with a mesh, and `asya dev` in it.

    Attributes:
        lines: what its terminal shows.
    """

    folder: Path
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("handlers", "jobs"):
            (self.folder / name).mkdir()
        (self.folder / "mesh.yaml").write_text(_MESH)
        self.save("handlers/light.py", _LIGHT, 0)
        self.save("jobs/heavy.py", _HEAVY, 0)

    def save(self, name: str, text: str, version: int) -> None:
        """Save a file whose code gives this version."""
        (self.folder / name).write_text(text.replace("VERSION", str(version)))

    def start(self) -> tuple[subprocess.Popen[str], float]:
        """Start the command; return it with the seconds until the mesh takes messages."""
        began = time.monotonic()
        command = [sys.executable, "-m", "asya_cli.main", "dev"]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        output = process.stdout
        assert output is not None
        for line in output:
            if "Ctrl-C ends" in line:
                seconds = time.monotonic() - began
                threading.Thread(target=lambda: self.lines.extend(output), daemon=True).start()
                return process, seconds
        raise RuntimeError("asya dev ended")


def result(connection: Connection, route: list[str], envelope_id: str) -> Any:
    """Send an envelope along a route, wait for its end, and return the payload of its result."""
    sqs, s3 = connection.sqs(), connection.s3()
    url = sqs.get_queue_url(QueueName=names.queue_name(connection.namespace, route[0]))["QueueUrl"]
    way = {"prev": [], "curr": route[0], "next": route[1:]}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"id": envelope_id, "route": way, "payload": {}}))
    key, ends_at = f"{connection.results.prefix}succeeded/{envelope_id}.json", time.monotonic() + _TIMEOUT
    while time.monotonic() < ends_at:
        try:
            stored = s3.get_object(Bucket=connection.results.bucket, Key=key)["Body"].read()
        except s3.exceptions.NoSuchKey:
            time.sleep(0.02)
            continue
        return json.loads(stored)["payload"]
    raise TimeoutError(f"{envelope_id} did not end within {_TIMEOUT:.0f} s")


def saved_to_result(author: Author, connection: Connection, change: Change, version: int) -> float:
    """Save new code, send an envelope when it is loaded, and return the seconds from the saved file to the result."""
    began, seen = time.monotonic(), len(author.lines)
    author.save(change.file, change.text, version)
    while not any(change.loaded in line for line in author.lines[seen:]):
        if time.monotonic() > began + _TIMEOUT:
            raise TimeoutError(f"{change.file} was not loaded within {_TIMEOUT:.0f} s")
        time.sleep(0.01)
    payload = result(connection, change.route, f"{change.route[0]}-{version}")
    if payload["version"] != version:
        raise RuntimeError(f"the result is that of version {payload['version']}, and not of {version}")
    return time.monotonic() - began


def main(rounds: int) -> None:
    """Measure, and print medians with the slowest."""
    times: dict[str, list[float]] = {"start": [], "light, three actors": [], "Spark": []}
    with tempfile.TemporaryDirectory(prefix="asya-bench-") as temporary:
        author = Author(Path(temporary))
        for _ in range(rounds):
            process, seconds = author.start()
            times["start"].append(seconds)
            process.send_signal(signal.SIGINT)
            process.wait()
        process, _ = author.start()
        try:
            connection = read_local(author.folder / ".asya")
            result(connection, ["heavy"], "warm-up")
            time.sleep(15)  # the author reads the result, and the next driver starts meanwhile
            for version in range(1, rounds + 1):
                times["light, three actors"].append(saved_to_result(author, connection, LIGHT, version))
            for version in range(1, rounds + 1):
                times["Spark"].append(saved_to_result(author, connection, SPARK, version))
                time.sleep(15)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    table = Table("from the saved file to the result", "median", "slowest", box=None)
    for name, seconds in times.items():
        table.add_row(name, f"{statistics.median(seconds):.1f} s", f"{max(seconds):.1f} s")
    Console().print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
