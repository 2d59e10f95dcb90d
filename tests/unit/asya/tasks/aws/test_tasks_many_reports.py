"""Concurrent reports: out of order, duplicated, through several gateways (`protocol §13`). The same on a table: tests/cloud."""

import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import Raw

from asya.protocol.events import TaskEvent
from asya.protocol.states import EventStatus
from asya.tasks.aws.tasks import Tasks
from tests.doubles.task_store import MemoryTaskStore
from tests.doubles.tasks import at, event, route_at

TASKS = 50
PROGRESS: tuple[EventStatus, ...] = ("received", "processing", "completed")
ACTORS = tuple(f"actor-{number}" for number in range(65))


def life_of(task_id: str) -> list[TaskEvent]:
    """200 reports: three for each of 65 hops, the end, and four of them twice."""
    reports = [
        event(task_id, status, position, position * 3.0 + number, route=route_at(position, ACTORS))
        for position in range(len(ACTORS))
        for number, status in enumerate(PROGRESS)
    ]
    end = event(task_id, "succeeded", len(ACTORS), 500.0, route=route_at(65, ACTORS), result=Raw(b'{"n":1}'))
    return [*reports, end, *reports[:3], end]


@pytest.mark.rule("13.order")
def test_200_reports_each_on_50_tasks_give_the_same_in_any_order() -> None:
    ids = [f"task-{number}" for number in range(TASKS)]
    reports = [report for task_id in ids for report in life_of(task_id)]
    assert len(reports) == 200 * TASKS
    random.Random(7).shuffle(reports)
    requests = [reports[first : first + 250] for first in range(0, len(reports), 250)]
    seen: dict[str, list[int]] = {task_id: [] for task_id in ids[:3]}
    done = threading.Event()
    store = MemoryTaskStore(86400.0)
    gateways = [Tasks(store, print) for _ in range(4)]

    def watch(task_id: str) -> None:
        while not done.wait(0.01):
            shown = gateways[0].read(task_id, at(0))
            seen[task_id].append(shown.progress_percent if shown else 0)

    with ThreadPoolExecutor(7) as pool:
        watching = [pool.submit(watch, task_id) for task_id in seen]
        try:
            told = pool.map(
                lambda pair: pair[0].report(pair[1], at(600), may_create=True),
                zip(itertools.cycle(gateways), requests, strict=False),
            )
            assert {each.status for results in told for each in results} == {204}
        finally:
            done.set()
        for each in watching:
            each.result()
    for task_id in ids:
        shown = gateways[1].read(task_id, at(600))
        assert shown is not None
        assert (shown.status, shown.progress_percent, shown.result) == ("succeeded", 100, Raw(b'{"n":1}'))
    for percents in seen.values():
        assert percents == sorted(percents)
