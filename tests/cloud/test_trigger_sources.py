"""Tasks that new objects and events start on the deployed mesh (protocol §16): one for each, however often it is told of."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING

import pytest

from asya.client.errors import UnavailableError
from asya.protocol import ids, names
from asya.tasks.listing import TaskFilter
from tests.cloud.deployed_cloud import until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

COUNT = 1000 if os.environ.get("ASYA_FULL_SIZE") else 12
SECONDS = 1800.0 if os.environ.get("ASYA_FULL_SIZE") else 300.0
"""How long a test waits for a condition."""
_BATCH = 10


def started(cloud: DeployedCloud, trigger: str, count: int) -> list[TaskView]:
    """Waits until as many tasks of a trigger have succeeded; returns them."""
    namespace = cloud.mesh.connection.namespace
    for queue in (names.TRIGGERS, "step", names.SINK, names.REPORTS, names.ENDS):
        name = names.queue_name(namespace, queue)
        until(lambda name=name: True if cloud.message_count(name) == 0 else None, f"{name} to be empty", SECONDS)

    def poll() -> list[TaskView] | None:
        try:
            tasks = list(cloud.mesh.iter_tasks(TaskFilter(owner=f"trigger:{trigger}"), page_size=20))
        except UnavailableError:  # a busy machine
            return None
        assert len(tasks) <= count, [task.id for task in tasks]
        assert not [task for task in tasks if task.status in ("failed", "canceled")]
        done = [task for task in tasks if task.status == "succeeded"]
        return done if len(done) == count else None

    return until(poll, f"{count} tasks of {trigger}", SECONDS)


@pytest.mark.rule("16.objects", "16.objects.notifications")
def test_16_each_new_object_starts_one_task(paths: DeployedCloud) -> None:
    keys = [f"landed/day {number}+é.csv" for number in range(COUNT)]
    paths.mesh.upload("landed/readme.txt", b"of no trigger")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda key: paths.mesh.upload(key, b"a,b"), keys))
    tasks = started(paths, "landed", COUNT)
    payload = paths.envelope(tasks[0])["payload"]
    assert payload.keys() == {"bucket", "key", "uri", "size", "etag", "sequencer", "steps"}
    assert (payload["bucket"], payload["size"], payload["steps"]) == ("data", 3, 1)
    assert payload["uri"] == f"{paths.mesh.connection.data.uri}{payload['key']}"
    assert tasks[0].started_by is not None
    told = {paths.envelope(task)["payload"]["key"] for task in tasks[:20]}
    assert told <= set(keys)
    assert len(told) == min(COUNT, 20)
    assert (tasks[0].started_by.kind, tasks[0].started_by.name) == ("trigger", "landed")


@pytest.mark.rule("16.start", "16.events", "16.events.payload")
def test_16_each_event_starts_one_task_however_often_it_comes(paths: DeployedCloud) -> None:
    """EventBridge delivers each event once here; one or two copies of each message follow or come before it."""
    bus, random = paths.client("events"), Random(16)
    event_ids: list[str] = []
    for start in range(0, COUNT, _BATCH):
        entries = [
            {"Source": "shop", "DetailType": "OrderPlaced", "Detail": json.dumps({"order": number})}
            for number in range(start, min(start + _BATCH, COUNT))
        ]
        event_ids += [each["EventId"] for each in bus.put_events(Entries=entries)["Entries"]]
    bus.put_events(Entries=[{"Source": "shop", "DetailType": "OrderCanceled", "Detail": "{}"}])
    copies = [(number, each) for number, each in enumerate(event_ids) for _ in range(random.randint(0, 2))]
    random.shuffle(copies)
    queue = names.queue_name(paths.mesh.connection.namespace, names.TRIGGERS)
    url = paths.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"]
    for number, event_id in copies:
        event = {
            "id": event_id,
            "source": "shop",
            "detail-type": "OrderPlaced",
            "time": "2026-11-25T10:00:00Z",
            "account": "000000000000",
            "detail": {"order": number},
        }
        paths.mesh_sqs().send_message(QueueUrl=url, MessageBody=json.dumps({"trigger": "ordered", "event": event}))
    tasks = started(paths, "ordered", COUNT)
    assert {task.id for task in tasks} == {ids.occurrence_id("ordered", f"event {each}") for each in event_ids}
    assert paths.envelope(tasks[0])["payload"].keys() == {"order", "steps"}
