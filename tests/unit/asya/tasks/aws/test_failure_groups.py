"""Groups of the failed tasks of a mesh (`protocol §13.failures`)."""

from dataclasses import replace as replace_filter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws import failure_groups
from asya.tasks.failures import FailureGroup, group_of, merged
from asya.tasks.listing import TaskFilter
from tests.doubles.listed_tasks import filters, meshes
from tests.doubles.task_lists import ALICE, World
from tests.doubles.tasks import at, event


def groups_of(world: World, wanted: TaskFilter, owner: str | None = None) -> list[FailureGroup]:
    return merged(chain.from_iterable(world.failure_pages(wanted, owner)))


@pytest.mark.rule("13.failures", "13.failures.pages")
@settings(max_examples=25)
@given(meshes(), filters(), st.sampled_from([None, ALICE]), st.booleans())
@pytest.mark.slow
def test_groups_are_those_of_the_listed_tasks(
    tasks: list[TaskRecord], wanted: TaskFilter, owner: str | None, is_tight: bool
) -> None:
    world = World(page_size=7)
    for task in tasks:
        world.store.put_record(task, None, at(0))
        if not task.is_terminal:
            world.tasks.report([event(task.id, "received", 1)], at(1), may_create=False)
    status = "running" if wanted.retrying else "failed"
    failed = replace_filter(wanted, status=status)
    with pytest.MonkeyPatch.context() as patch:
        if is_tight:
            patch.setattr(failure_groups, "_QUERY_SIZE", 2)
            patch.setattr(failure_groups, "MAX_KEYS", 3)
            patch.setattr(failure_groups, "MAX_INDEX_PAGES", 2)
            patch.setattr(failure_groups, "MAX_GROUPS", 1)
        listed = chain(*world.filtered_pages(failed, 100, owner))
        assert groups_of(world, failed, owner) == merged(
            group_of(task, task.retry.error if task.retry is not None else None) for task in listed
        )


@pytest.mark.rule("13.failures.pages")
@pytest.mark.slow
def test_ten_thousand_failed_tasks_are_grouped_in_a_few_pages() -> None:
    world = World()
    first = TaskRecord(
        id="t", status="failed", created_at=format_time(at(0)), updated_at=format_time(at(0)), actor="bill"
    )
    for number in range(10_000):
        error = ErrorInfo(type=("KeyError", "ValueError")[number % 10 == 0], message=f"order {number}")
        time = format_time(at(number // 10))
        world.store.put_record(replace(first, id=f"t{number}", created_at=time, error=error), None, at(0))
    pages = list(world.failure_pages(TaskFilter(status="failed"), None))
    assert len(pages) <= 3
    assert [(group.error, group.count) for group in merged(chain(*pages))] == [
        ("KeyError: order #", 9_000),
        ("ValueError: order #", 1_000),
    ]
