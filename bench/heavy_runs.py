"""Runs and seconds of bursts of trivial envelopes in heavy actors, on a local cloud, with the default window and size.

`python -m bench.heavy_runs [ENVELOPES …]`, by default 1 and 300. The shape `alone` gets a run for each envelope, as a state
machine does that starts a job run for each item; it is measured with ten envelopes at most, because each takes a driver.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from asya.client.connection import Connection, read_local
from asya.protocol import names
from asya_local.account import aws_client, read_keys
from asya_local.cloud import down, up
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps

MESH = Path(__file__).parent / "heavy" / "mesh.yaml"
SHAPES = ("each", "frame", "alone")
SIZES = (1, 300)
ALONE_LIMIT = 10
TIMEOUT_SECONDS = 1800.0


def burst(connection: Connection, dynamodb: Any, actor: str, count: int) -> tuple[int, float]:
    """Send `count` envelopes to an actor and wait for their ends; return the runs that they took, and the seconds."""
    before = _runs(dynamodb, connection.namespace, actor)
    prefix = f"{actor}-{uuid4().hex[:8]}-"
    sqs = connection.sqs()
    url = sqs.get_queue_url(QueueName=names.queue_name(connection.namespace, actor))["QueueUrl"]
    began = time.perf_counter()
    for start in range(0, count, 10):
        bodies = [
            {"id": f"{prefix}{n}", "route": {"prev": [], "curr": actor, "next": []}, "payload": {"n": n}}
            for n in range(start, min(start + 10, count))
        ]
        entries: Any = [{"Id": str(place), "MessageBody": json.dumps(body)} for place, body in enumerate(bodies)]
        if sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed"):
            raise RuntimeError(f"{url} did not accept all messages of a batch")
    while _ended(connection, prefix) < count:
        if time.perf_counter() - began > TIMEOUT_SECONDS:
            raise TimeoutError(f"{actor}: {count} envelopes did not end within {TIMEOUT_SECONDS:.0f} s")
        time.sleep(0.2)
    return _runs(dynamodb, connection.namespace, actor) - before, time.perf_counter() - began


def _ended(connection: Connection, prefix: str) -> int:
    pages = connection.s3().get_paginator("list_objects_v2")
    folder = f"{connection.results.prefix}succeeded/{prefix}"
    return sum(page["KeyCount"] for page in pages.paginate(Bucket=connection.results.bucket, Prefix=folder))


def _runs(dynamodb: Any, namespace: str, actor: str) -> int:
    """Return the number of job runs of an actor so far."""
    answer = dynamodb.query(
        TableName=names.table_name(namespace, "pending"),
        KeyConditionExpression="pk = :runs AND sk < :latest",
        ExpressionAttributeValues={":runs": {"S": f"RUN#{actor}"}, ":latest": {"S": "l"}},
        Select="COUNT",
        ConsistentRead=True,
    )
    return int(answer["Count"])


def main() -> None:
    """Deploy the mesh, send the bursts, and print runs and seconds."""
    console = Console()
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    table = Table(title="Bursts of trivial envelopes", title_justify="left", box=None, pad_edge=False)
    for column in ("shape", "envelopes", "runs", "seconds"):
        table.add_column(column, justify="right" if column != "shape" else "left")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        up(MESH, state, steps=Steps())
        try:
            connection = read_local(state)
            key = read_keys(StateFolder.at(state).keys)["deployer"]
            dynamodb = aws_client("dynamodb", str(connection.endpoint_url), key)
            for size in sizes:
                for shape in SHAPES:
                    count = min(size, ALONE_LIMIT) if shape == "alone" else size
                    runs, seconds = burst(connection, dynamodb, shape, count)
                    table.add_row(shape, str(count), str(runs), f"{seconds:.0f}")
        finally:
            down(state)
    console.print(table)


if __name__ == "__main__":
    main()
