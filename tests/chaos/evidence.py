"""Reads what a chaos run has left in the cloud: records, objects, effects, queues."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from asya.protocol import names
from tests.chaos.accounts import Evidence, Record, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.chaos.observer import Observer
    from tests.cloud.heavy_cloud import HeavyCloud

_PHASES = ("succeeded", "failed", "canceled", "sump")
_FAN_IN_QUEUE = "gather"
_READINGS = 20


def read_evidence(cloud: HeavyCloud, observer: Observer, earlier: frozenset[str]) -> Evidence:
    """Read everything once, except the tasks of `earlier`; the cloud should be at rest."""
    queues, timers = _left(cloud)
    results = cloud.cloud.mesh.connection.results
    return Evidence(
        ids=dict(observer.workload.ids),
        records={each: record for each, record in read_records(cloud).items() if each not in earlier},
        objects={
            each: stored for each, stored in read_objects(cloud, observer.log.began).items() if each not in earlier
        },
        effects=_effects(cloud),
        queues=queues,
        timers=timers,
        sightings=(observer.records, observer.views),
        finals={task_id: _finals(observer.streams[task_id].events) for task_id in observer.ended_streams},
        superseded=sum(1 for _ in _listed(cloud.client("s3"), results.bucket, f"{results.prefix}superseded/")),
    )


def read_records(cloud: HeavyCloud) -> dict[str, Record]:
    """The records of all tasks."""
    pages = (
        cloud.client("dynamodb").get_paginator("scan").paginate(TableName=names.table_name(cloud.namespace, "tasks"))
    )
    items = (item for page in pages for item in page["Items"] if item["sk"]["S"] == "record")
    return {item["pk"]["S"]: _record(item) for item in items}


def read_objects(cloud: HeavyCloud, began: float) -> dict[str, list[Stored]]:
    """The result objects of all phases by envelope id, with their payloads."""
    place = cloud.cloud.mesh.connection.results
    s3 = cloud.client("s3")
    entries = [
        (phase, entry)
        for phase in _PHASES
        for entry in _listed(s3, place.bucket, f"{place.prefix}{phase}/")
        if "/unreadable/" not in entry["Key"]
    ]

    def read(entry: Any) -> Any:
        return json.loads(s3.get_object(Bucket=place.bucket, Key=entry["Key"])["Body"].read())["payload"]

    objects: dict[str, list[Stored]] = {}
    with ThreadPoolExecutor(4) as pool:
        payloads = pool.map(read, (entry for _, entry in entries))
        for (phase, entry), payload in zip(entries, payloads, strict=True):
            envelope_id = unquote(entry["Key"].rpartition("/")[2].removesuffix(".json"))
            stored = Stored(phase, payload, entry["LastModified"].timestamp() - began)
            objects.setdefault(envelope_id, []).append(stored)
    return objects


def _left(cloud: HeavyCloud) -> tuple[dict[str, int], int]:
    """The messages that stay: a timer that is due is on its queue for a moment, until its function has taken it."""
    for _ in range(_READINGS):
        queues, timers = message_counts(cloud)
        if all(queue.endswith("-dlq") for queue in queues):
            break
        time.sleep(1)
    return queues, timers


def message_counts(cloud: HeavyCloud) -> tuple[dict[str, int], int]:
    """The messages of each queue that has any, and the timers of sets, which wait for their time on the fan-in queue."""
    sqs = cloud.client("sqs")
    counts: Counter[str] = Counter()
    timers = 0
    for url in sqs.list_queues(QueueNamePrefix=names.queue_name(cloud.namespace, ""), MaxResults=1000)["QueueUrls"]:
        queue = url.rpartition("/")[2]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        delayed = int(attributes.get("ApproximateNumberOfMessagesDelayed", 0))
        if queue == names.queue_name(cloud.namespace, _FAN_IN_QUEUE):
            timers, delayed = delayed, 0
        visible, in_flight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        counts[queue] = int(attributes[visible]) + int(attributes[in_flight]) + delayed
    return dict(+counts), timers


def _finals(events: Sequence[Mapping[str, Any]]) -> int:
    """Count the final events of a stream; a provisional one counts only without another one."""
    finals = [event["data"] for event in events if event["event"] == "final"]
    return sum(not final.get("provisional") for final in finals) or len(finals)


def _effects(cloud: HeavyCloud) -> dict[tuple[str, str], int]:
    """How often each actor noted each name."""
    data = cloud.cloud.mesh.connection.data
    keys = [entry["Key"] for entry in _listed(cloud.client("s3"), data.bucket, f"{data.prefix}effects/")]
    parts = [key.removeprefix(f"{data.prefix}effects/").split("/") for key in keys]
    return dict(Counter((actor, name) for actor, name, _ in parts))


def _listed(s3: Any, bucket: str, prefix: str) -> Iterator[Any]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from page.get("Contents", [])


def _record(item: Any) -> Record:
    def text(name: str) -> str:
        return str(item.get(name, {}).get("S", ""))

    error = json.loads(text("error") or "{}") or {}
    return Record(text("status"), text("reason"), text("actor"), str(error.get("message", ""))[:300], text("parent_id"))
