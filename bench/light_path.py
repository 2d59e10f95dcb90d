"""Three pass-through actors on a local cloud, compared with three functions that only forward messages.

`python -m bench.light_path [ENVELOPES]`. The variants take turns on the same cloud: bare functions, reports off, reports on, and
reports on while they are recorded. x-sink does not consume its queue. A turn ends when all envelopes are on that queue and the
queues of the actors are empty. The next turn starts when all reports are recorded.

On AWS the function that records reports has machines of its own, and no envelope waits for it. Here it shares two cores with
the actors. So one variant records after its turn, which measures the path of the envelopes, and one meanwhile, which measures
what this machine does as a whole.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from asya.client.connection import read_local
from asya.protocol import names
from asya.protocol.status import created
from asya.protocol.times import format_time
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange
from asya_local.account import ACCOUNT_ID, aws_client, read_keys
from asya_local.cloud import down, up
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps
from bench.core import NOW

HERE = Path(__file__).parent / "light"
ACTORS = ("one", "two", "three")
GOALS = {"reports off": 0.8, "reports on": 0.7}
ROUNDS = 3
SERVICES = ("sqs", "lambda", "iam", "sts", "dynamodb")
ENVELOPES = 1_000
TIMEOUT_SECONDS = 600.0
WARM_UP = 100
_BATCH = 10
_TRUST = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
}
_FORWARD = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "sqs:*", "Resource": f"arn:aws:sqs:*:{ACCOUNT_ID}:bare-*"},
}
# The concurrency of the mesh's own functions in `light/mesh.yaml`.
_CONCURRENCY = 2


@dataclass(frozen=True)
class Variant:
    """A variant to measure.

    Attributes:
        queues: the URLs of its queues in order.
        headers: the headers of its envelopes.
        records_later: whether reports stay on their queue until all envelopes have arrived.
    """

    name: str
    queues: tuple[str, ...]
    headers: dict[str, str]
    records_later: bool = False


class Cloud:
    """A local cloud with all variants."""

    def __init__(self, state: Path) -> None:
        mesh = read_local(state)
        key = read_keys(StateFolder.at(state).keys)["deployer"]
        self._sink_table = names.table_name(mesh.namespace, "sink")
        self._clients = {name: aws_client(name, str(mesh.endpoint_url), key) for name in SERVICES}
        queues = tuple(self._url(names.queue_name(mesh.namespace, actor)) for actor in (*ACTORS, names.SINK))
        self._switch_event_sources(names.function_name(mesh.namespace, names.SINK), enabled=False)
        self._recorder = names.function_name(mesh.namespace, names.REPORTS)
        self._report_queues = [
            self._url(names.queue_name(mesh.namespace, name)) for name in (names.REPORTS, names.ENDS)
        ]
        self.variants = (
            Variant("bare functions that forward", self._forwarders(), {}),
            Variant("reports off", queues, {"x-asya-mesh-status": "off"}),
            Variant("reports on", queues, {}, records_later=True),
            Variant("reports on, recorded meanwhile", queues, {}),
        )

    def hops_per_second(self, variant: Variant, count: int) -> float:
        """Send envelopes, wait until all have arrived and the other queues are empty, and return the throughput."""
        if variant.records_later:
            self._switch_event_sources(self._recorder, enabled=False)
        began = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda start: self._send(variant, start, count), range(0, count, _BATCH)))
        self._wait(variant, lambda: self._messages(variant.queues[-1]) >= count)
        self._wait(variant, lambda: not any(map(self._messages, variant.queues[:-1])))
        seconds = time.perf_counter() - began
        self._switch_event_sources(self._recorder, enabled=True)
        self._wait(variant, lambda: not any(map(self._messages, self._report_queues)))
        self._clients["sqs"].purge_queue(QueueUrl=variant.queues[-1])
        return count * len(ACTORS) / seconds

    def list_sender(self) -> None:
        """List the sender of the envelopes as a role of the mesh: the gateway sends them on AWS."""
        user_id = self._clients["sts"].get_caller_identity()["UserId"]
        roles = RoleItems(self._clients["dynamodb"], self._sink_table)
        roles.write(ListChange({user_id: names.GATEWAY_API}, frozenset()), datetime.now(UTC))

    def _wait(self, variant: Variant, is_done: Callable[[], bool]) -> None:
        until = time.perf_counter() + TIMEOUT_SECONDS
        while not is_done():
            if time.perf_counter() > until:
                raise TimeoutError(f"{variant.name}: not done within {TIMEOUT_SECONDS:.0f} s")
            time.sleep(0.05)

    def _send(self, variant: Variant, start: int, count: int) -> None:
        entries = [
            {"Id": str(number), "MessageBody": _envelope(variant).decode()}
            for number in range(start, min(start + _BATCH, count))
        ]
        if self._clients["sqs"].send_message_batch(QueueUrl=variant.queues[0], Entries=entries).get("Failed"):
            raise RuntimeError(f"{variant.queues[0]} did not accept all messages of a batch")

    def _messages(self, url: str) -> int:
        """Return the number of messages on a queue, visible or in flight."""
        kinds = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = self._clients["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=kinds)["Attributes"]
        return sum(int(attributes[kind]) for kind in kinds)

    def _url(self, queue: str) -> str:
        url: str = self._clients["sqs"].get_queue_url(QueueName=queue)["QueueUrl"]
        return url

    def _switch_event_sources(self, function: str, *, enabled: bool) -> None:
        functions = self._clients["lambda"]
        for mapping in functions.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def _forwarders(self) -> tuple[str, ...]:
        sqs = self._clients["sqs"]
        urls = [sqs.create_queue(QueueName=f"bare-{name}")["QueueUrl"] for name in (*ACTORS, "end")]
        for number, actor in enumerate(ACTORS):
            self._forwarder(f"bare-{actor}", urls[number], urls[number + 1])
        return tuple(urls)

    def _forwarder(self, name: str, url: str, following: str) -> None:
        functions: Any = self._clients["lambda"]
        self._clients["iam"].create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))
        self._clients["iam"].put_role_policy(RoleName=name, PolicyName="forward", PolicyDocument=json.dumps(_FORWARD))
        functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=f"arn:aws:iam::{ACCOUNT_ID}:role/{name}",
            Handler="forward.handle",
            Code={"ZipFile": _zip(HERE / "forward.py")},
            Timeout=30,
            Environment={"Variables": {"FOLLOWING_QUEUE": following}},
        )
        arn = self._clients["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        functions.create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName=name,
            BatchSize=_BATCH,
            ScalingConfig={"MaximumConcurrency": _CONCURRENCY},
        )


def main() -> None:
    """Deploy the variants, measure them in turns, and print the results."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ENVELOPES
    with tempfile.TemporaryDirectory(prefix="asya-bench-") as folder:
        state = Path(folder)
        try:
            # As on AWS: each call is checked.
            up(HERE / "mesh.yaml", state, steps=Steps())
            cloud = Cloud(state)
            cloud.list_sender()
            for variant in cloud.variants:
                cloud.hops_per_second(variant, WARM_UP)
            turns = [[cloud.hops_per_second(variant, count) for variant in cloud.variants] for _ in range(ROUNDS)]
        finally:
            down(state)
    _show([variant.name for variant in cloud.variants], turns, count)


def _show(variants: list[str], turns: list[list[float]], count: int) -> None:
    table = Table(title=f"{count} envelopes, three hops each", title_justify="left", box=None, pad_edge=False)
    for column in ("", "hops/s", "ratio", "goal", "each turn"):
        table.add_column(column, justify="left" if not column else "right")
    for number, name in enumerate(variants):
        rate = statistics.median(turn[number] for turn in turns)
        ratio = statistics.median(turn[number] / turn[0] for turn in turns)
        goal = f"≥ {GOALS[name]:.1f}" if name in GOALS else ""
        each = " ".join(f"{turn[number]:.0f}" for turn in turns)
        table.add_row(name, f"{rate:.0f}", f"{ratio:.2f}", goal, each)
    Console().print(table)


_numbers = iter(range(10**9))


def _envelope(variant: Variant) -> bytes:
    """Return an envelope as the gateway creates it, about as large as in `bench.core`."""
    items = [{"article": f"A-{item:05}", "pieces": item % 7, "price": 9.5 + item} for item in range(24)]
    return msgspec.json.encode(
        {
            "id": f"{variant.name.replace(' ', '-')}-{time.time_ns()}-{next(_numbers)}",
            "route": {"prev": [], "curr": ACTORS[0], "next": ACTORS[1:]},
            "headers": {"tenant": "acme"} | variant.headers,
            "status": created(ACTORS[0], format_time(NOW)),
            "payload": {"order": items},
        }
    )


def _zip(source: Path) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.write(source, source.name)
    return memory.getvalue()


if __name__ == "__main__":
    main()
