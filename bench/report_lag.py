"""How late a stream shows what a function reports, on a local cloud.

`python -m bench.report_lag [TASKS]`. Tasks of three pass-through actors run one after the other, and a client follows each by
its stream. The lag of an event is the time from the report's own timestamp to the arrival of the event at the client. It
contains the wait for the end of the batch, SQS, the function that takes the reports, the tasks table, and the polls of the
stream.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from rich.console import Console
from rich.table import Table

from asya.client.connection import Connection, read_local
from asya.protocol import names
from asya.protocol.times import parse_time
from asya.tasks.reporting.aws.gateway_client import address_of
from asya_local.cloud import down, up
from asya_local.steps import Steps

MESH = Path(__file__).parent / "light" / "mesh.yaml"
ROUTE = ("one", "two", "three")
TASKS = 40
WARM_UP = 5
GOAL_SECONDS = 2.0
TIMEOUT_SECONDS = 60.0
_NOT_YET_KNOWN, _ENDED = 404, 204


@dataclass
class Follower:
    """Sends tasks and follows their streams."""

    connection: Connection
    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False))

    def lags(self) -> list[float]:
        """Run one task, and return the lag of each event of its stream in seconds."""
        task_id = str(uuid4())
        sqs = self.connection.sqs()
        url = sqs.get_queue_url(QueueName=names.queue_name(self.connection.namespace, ROUTE[0]))["QueueUrl"]
        route = {"prev": [], "curr": ROUTE[0], "next": ROUTE[1:]}
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"id": task_id, "route": route, "payload": {"n": 1}}))
        lags: list[float] = []
        last, limit = "", time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < limit:
            status, text = self._get(f"/api/v1/mesh/{task_id}/events", last)
            arrived = datetime.now(UTC)
            if status == _NOT_YET_KNOWN:
                time.sleep(0.05)
                continue
            if status == _ENDED:
                return lags
            for event in _events(text):
                last = event["id"]
                at = event["data"].get("at") or event["data"]["updated_at"]
                lags.append((arrived - parse_time(at)).total_seconds())
                if event["event"] == "final":
                    return lags
        raise TimeoutError(f"the stream of {task_id} did not end within {TIMEOUT_SECONDS:.0f} s")

    def _get(self, path: str, last_event_id: str) -> tuple[int, str]:
        url = self.connection.gateway_url + path
        headers = {"host": urlsplit(url).netloc} | ({"last-event-id": last_event_id} if last_event_id else {})
        request = AWSRequest("GET", url, headers=headers)
        SigV4Auth(self.connection.session.get_credentials(), "execute-api", self.connection.region).add_auth(request)
        answer = self.pool.request(
            "GET", address_of(url), headers=dict(request.headers.items()), timeout=TIMEOUT_SECONDS, redirect=False
        )
        return answer.status, answer.data.decode()


def _events(text: str) -> list[dict[str, Any]]:
    """Parse the Server-Sent Events of an answer."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            events.append({**fields, "data": json.loads(fields["data"])})
    return events


def main() -> None:
    """Deploy the mesh, follow the tasks, and print the lags."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TASKS
    with tempfile.TemporaryDirectory(prefix="asya-bench-") as folder:
        state = Path(folder)
        try:
            up(MESH, state, steps=Steps())
            follower = Follower(read_local(state))
            for _ in range(WARM_UP):
                follower.lags()
            lags = [lag for _ in range(count) for lag in follower.lags()]
        finally:
            down(state)
    cuts = statistics.quantiles(lags, n=20)
    table = Table("events", "median", "p95", "longest", "goal for p95", title=f"report to stream, {count} tasks")
    table.add_row(str(len(lags)), *(f"{each:.2f} s" for each in (cuts[9], cuts[18], max(lags))), f"{GOAL_SECONDS:g} s")
    Console().print(table)


if __name__ == "__main__":
    main()
