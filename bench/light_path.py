"""Three pass-through actors on a local cloud beside three bare functions that only forward: `python -m bench.light_path`.

Bare, reports off and reports on take turns on the same cloud, so that all of them meet the same weather. The end actor is set
aside: a run is over when every envelope lies on the queue behind the third hop, and none is being worked on any more: a sidecar
sends its reports before its batch is done.
"""

from __future__ import annotations

import io
import statistics
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from asya.protocol import names
from asya.protocol.status import created
from asya.protocol.times import format_time
from asya_cli.connection import read_local
from asya_local.accounts import aws_client
from asya_local.cloud import down, up
from asya_local.keys import ACCOUNT_ID, read_keys
from asya_local.state_folder import StateFolder
from asya_local.steps import Steps
from bench.core import NOW

HERE = Path(__file__).parent / "light"
ACTORS = ("one", "two", "three")
GOALS = {"reports off": 0.8, "reports on": 0.4}
ROUNDS = 3
ENVELOPES = 1_000
SECONDS = 600.0
WARM_UP = 100
_BATCH = 10
# As many batches of one queue at once as the mesh's own functions may work on.
_AT_ONCE = 2


@dataclass(frozen=True)
class Way:
    """One way to be measured: the queues, by URL, from where messages are put to where they arrive."""

    name: str
    queues: tuple[str, ...]
    headers: dict[str, str]


class Cloud:
    """The local cloud with both ways deployed on it."""

    def __init__(self, state: Path) -> None:
        found = read_local(state)
        key = read_keys(StateFolder.at(state).keys)["deployer"]
        self._clients = {name: aws_client(name, str(found.endpoint_url), key) for name in ("sqs", "lambda")}
        queues = tuple(self._url(names.queue_name(found.namespace, actor)) for actor in (*ACTORS, names.SINK))
        self._set_aside(names.function_name(found.namespace, names.SINK))
        self.ways = (
            Way("bare functions that forward", self._forwarders(), {}),
            Way("reports off", queues, {"x-asya-mesh-status": "off"}),
            Way("reports on", queues, {}),
        )

    def hops_per_second(self, way: Way, count: int) -> float:
        """Send so many envelopes and wait until all of them have arrived, and all is still."""
        began = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda start: self._send(way, start, count), range(0, count, _BATCH)))
        while (arrived := self._messages(way.queues[-1])) < count or any(map(self._messages, way.queues[:-1])):
            if time.perf_counter() - began > SECONDS:
                raise TimeoutError(f"{way.name}: only {arrived} of {count} arrived within {SECONDS:.0f} s")
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        self._clients["sqs"].purge_queue(QueueUrl=way.queues[-1])
        return count * len(ACTORS) / seconds

    def _send(self, way: Way, start: int, count: int) -> None:
        entries = [
            {"Id": str(number), "MessageBody": _envelope(way).decode()}
            for number in range(start, min(start + _BATCH, count))
        ]
        if self._clients["sqs"].send_message_batch(QueueUrl=way.queues[0], Entries=entries).get("Failed"):
            raise RuntimeError("the first queue did not take all of it")

    def _messages(self, url: str) -> int:
        """How many lie on a queue, waiting or being worked on."""
        kinds = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self._clients["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=kinds)["Attributes"]
        return sum(int(found[kind]) for kind in kinds)

    def _url(self, queue: str) -> str:
        url: str = self._clients["sqs"].get_queue_url(QueueName=queue)["QueueUrl"]
        return url

    def _set_aside(self, function: str) -> None:
        functions = self._clients["lambda"]
        for mapping in functions.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)

    def _forwarders(self) -> tuple[str, ...]:
        sqs = self._clients["sqs"]
        urls = [sqs.create_queue(QueueName=f"bare-{place}")["QueueUrl"] for place in (*ACTORS, "end")]
        for number, actor in enumerate(ACTORS):
            self._forwarder(f"bare-{actor}", urls[number], urls[number + 1])
        return tuple(urls)

    def _forwarder(self, name: str, url: str, following: str) -> None:
        functions: Any = self._clients["lambda"]
        functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=f"arn:aws:iam::{ACCOUNT_ID}:role/{name}",
            Handler="forward.handle",
            Code={"ZipFile": _zipped(HERE / "forward.py")},
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
            ScalingConfig={"MaximumConcurrency": _AT_ONCE},
        )


def main() -> None:
    """Deploy, measure, print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ENVELOPES
    with tempfile.TemporaryDirectory(prefix="asya-bench-") as folder:
        state = Path(folder)
        try:
            up(HERE / "mesh.yaml", state, steps=Steps())
            cloud = Cloud(state)
            for way in cloud.ways:
                cloud.hops_per_second(way, WARM_UP)
            turns = [[cloud.hops_per_second(way, count) for way in cloud.ways] for _ in range(ROUNDS)]
        finally:
            down(state)
    _show([way.name for way in cloud.ways], turns, count)


def _show(ways: list[str], turns: list[list[float]], count: int) -> None:
    table = Table(title=f"{count} envelopes, three hops each", title_justify="left", box=None, pad_edge=False)
    for column in ("", "hops/s", "ratio", "goal", "each turn"):
        table.add_column(column, justify="left" if not column else "right")
    for number, name in enumerate(ways):
        rate = statistics.median(turn[number] for turn in turns)
        ratio = statistics.median(turn[number] / turn[0] for turn in turns)
        goal = f"≥ {GOALS[name]:.1f}" if name in GOALS else ""
        each = " ".join(f"{turn[number]:.0f}" for turn in turns)
        table.add_row(name, f"{rate:.0f}", f"{ratio:.2f}", goal, each)
    Console().print(table)


_numbers = iter(range(10**9))


def _envelope(way: Way) -> bytes:
    """About as many bytes as in the benchmark of the core, made as the gateway makes one."""
    items = [{"article": f"A-{item:05}", "pieces": item % 7, "price": 9.5 + item} for item in range(24)]
    return msgspec.json.encode(
        {
            "id": f"{way.name.replace(' ', '-')}-{time.time_ns()}-{next(_numbers)}",
            "route": {"prev": [], "curr": ACTORS[0], "next": ACTORS[1:]},
            "headers": {"tenant": "acme"} | way.headers,
            "status": created(ACTORS[0], format_time(NOW)),
            "payload": {"order": items},
        }
    )


def _zipped(source: Path) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.write(source, source.name)
    return memory.getvalue()


if __name__ == "__main__":
    main()
