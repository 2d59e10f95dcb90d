"""Seconds from pending to result of single envelopes in an idle resident run and in runs that start cold, on a local cloud.

`python -m bench.resident_runs [ENVELOPES]`, by default 20 to the resident run, and 3 that start cold.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from asya.client.connection import read_local
from asya.heavy.aws.run_files import Manifests
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.protocol.times import parse_time
from asya_local.account import aws_client, read_keys
from asya_local.cloud import down, up
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps
from bench.heavy_runs import MESH

if TYPE_CHECKING:
    from asya.client.connection import Connection

_COLD = 3
_TIMEOUT = 300.0


def single(connection: Connection, actor: str) -> tuple[str, datetime]:
    """Send an envelope to an actor and wait for its end; return its id, and the time of its end."""
    name = f"{actor}-{uuid4().hex[:8]}"
    sqs = connection.sqs()
    url = sqs.get_queue_url(QueueName=names.queue_name(connection.namespace, actor))["QueueUrl"]
    envelope = {"id": name, "route": {"prev": [], "curr": actor, "next": []}, "payload": {"n": 1}}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(envelope))
    s3, ends_at = connection.s3(), time.monotonic() + _TIMEOUT
    prefix = f"{connection.results.prefix}succeeded/{name}"
    while not s3.list_objects_v2(Bucket=connection.results.bucket, Prefix=prefix)["KeyCount"]:
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{name} did not end within {_TIMEOUT:.0f} s")
        time.sleep(0.05)
    return name, datetime.now(UTC)


def pending_since(manifests: Manifests, records: RunRecords, actor: str, envelope: str) -> datetime:
    """Return when an envelope became pending, as the manifest of its run says."""
    manifest = manifests.read(actor, records.latest(actor))
    member = next(each for each in (manifest.members if manifest else ()) if each.id == envelope)
    return parse_time(member.admitted_at)


def main() -> None:
    """Deploy the mesh, send the envelopes one by one, and print the seconds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    table = Table(title="Pending to result, one envelope at a time", title_justify="left", box=None, pad_edge=False)
    for column in ("run", "envelopes", "median", "slowest"):
        table.add_column(column, justify="right" if column != "run" else "left")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        up(MESH, state, steps=Steps())
        try:
            connection = read_local(state)
            key, endpoint = read_keys(StateFolder.at(state).keys)["deployer"], str(connection.endpoint_url)
            dynamodb, s3 = aws_client("dynamodb", endpoint, key), aws_client("s3", endpoint, key)
            bucket = connection.results.bucket
            name = names.table_name(connection.namespace, "pending")
            for actor, sent in (("alone", _COLD), ("resident", count)):
                if actor == "resident":
                    single(connection, actor)  # starts the run
                seconds = []
                for _ in range(sent):
                    envelope, ended = single(connection, actor)
                    records = RunRecords(dynamodb, table=name, retention=timedelta(0))
                    since = pending_since(Manifests(s3, bucket=bucket), records, actor, envelope)
                    seconds.append((ended - since).total_seconds())
                    print(actor, f"{seconds[-1]:.2f}", flush=True)
                table.add_row(
                    "idle and resident" if actor == "resident" else "cold",
                    str(sent),
                    f"{statistics.median(seconds):.1f} s",
                    f"{max(seconds):.1f} s",
                )
        finally:
            down(state)
    Console().print(table)


if __name__ == "__main__":
    main()
