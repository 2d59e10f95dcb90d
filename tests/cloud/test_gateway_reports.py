"""Many reports at once (protocol §13) on the deployed mesh: shuffled, repeated, over several connections."""

from __future__ import annotations

import os
import random
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol.times import format_time
from tests.cloud.environment import environment, now
from tests.cloud.gateway_tasks import create_record, read_task
from tests.cloud.stream_clients import StreamClient

if TYPE_CHECKING:
    from datetime import datetime

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))


@pytest.mark.rule("13.order", "13.progress.never-back", "13.stream.id")
def test_shuffled_and_duplicate_reports_give_the_same_task(gateway: DeployedCloud, operator: ApiCaller) -> None:
    """6 tasks (50 in full size) get 200 reports each: shuffled, with duplicates, over several connections.

    Threads watch the progress. Clients with short connections follow two tasks, whose final reports are last.
    """
    rng = random.Random(7)
    tasks = [create_record(gateway) for _ in range(50 if FULL else 6)]
    clients = [StreamClient(operator, task_id) for task_id in (tasks[-1], tasks[-1], tasks[-2])]
    actors = [f"actor-{number}" for number in range(65)]
    began = now()
    reports = [report for task_id in tasks for report in reports_of(task_id, actors, began)]
    rng.shuffle(reports)
    ends = [each for each in reports if each["id"] in tasks[-2:] and each["status"] == "succeeded"]
    count = len(reports)
    reports = [each for each in reports if each not in ends]
    batches = [reports[first : first + 250] for first in range(0, len(reports), 250)]
    progress: dict[str, list[int]] = {task_id: [] for task_id in tasks[-4:]}
    done = threading.Event()

    def watch(task_id: str) -> None:
        while not done.is_set():
            progress[task_id].append(read_task(operator, task_id)["progress_percent"])

    def follow(client: StreamClient) -> None:
        limits = random.Random(client.task_id)
        while client.connect(limit=limits.randint(1, 80)):
            pass

    def send(batch: list[Any]) -> None:
        pending = batch
        while pending:
            status, content = operator.call("POST", "/api/v1/mesh/events", pending)
            assert status == 200, content
            pending = [each for each, item in zip(pending, content["items"], strict=True) if item["status"] != 204]

    with environment().threads(15) as pool:
        watchers = [pool.submit(watch, task_id) for task_id in progress]
        watchers += [pool.submit(follow, client) for client in clients]
        list(pool.map(send, batches))
        send(ends)
        done.set()
        for each in watchers:
            each.result()
    assert count == 200 * len(tasks)
    for task_id in tasks:
        task = read_task(operator, task_id)
        assert (task["status"], task["progress_percent"], task["result"]) == ("succeeded", 100, {"of": task_id})
    assert all(percents == sorted(percents) for percents in progress.values())
    # On a busy machine, some watchers read only after all reports, but not all of them.
    assert min(min(percents) for percents in progress.values()) < 100
    for client in clients:
        assert_complete_stream(client, len(actors))


def assert_complete_stream(client: StreamClient, hops: int) -> None:
    """Checks that the client got each status once, and that progress never decreased."""
    statuses = [(each["data"]["position"], each["data"]["step"]) for each in client.events if "step" in each["data"]]
    steps = ("completed", "processing", "received")
    assert sorted(statuses) == [(position, step) for position in range(hops) for step in steps]
    percents = [each["data"]["progress_percent"] for each in client.events]
    assert percents == sorted(percents)
    assert [each["event"] for each in client.events].count("final") == 1
    assert (client.events[-1]["event"], percents[-1]) == ("final", 100)
    assert client.connections > 2


def reports_of(task_id: str, actors: list[str], began: datetime) -> list[Any]:
    """200 reports: three for each of 65 hops, the final one, and four duplicates."""
    reports: list[Any] = []
    for position, actor in enumerate(actors):
        data = {"actor": actor, "route": {"prev": actors[:position], "curr": actor, "next": actors[position + 1 :]}}
        for number, status in enumerate(("received", "processing", "completed")):
            at = format_time(began + timedelta(seconds=position * 3 + number))
            reports.append({"id": task_id, "status": status, "at": at, "position": position, "data": data})
    end = {"actor": actors[-1], "result": {"of": task_id}}
    at = format_time(began + timedelta(seconds=500))
    reports.append({"id": task_id, "status": "succeeded", "at": at, "position": len(actors), "data": end})
    return [*reports, *reports[:3], reports[-1]]
