"""Hops that are written together share items, and a reader sees what it sees of hops one by one (`protocol §13`)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.gateway.streams.new_events import group_attempts
from asya.protocol.events import TaskEvent
from asya.protocol.hops import HopKey, fold, hop_records
from asya.tasks.aws.dynamodb_store import DynamoTaskStore
from asya.tasks.aws.lists import timeline
from asya.tasks.hop_groups import SPAN, hop_groups
from asya.testing.dynamo.tables import MemoryDynamo, Table
from tests.doubles.tasks import at, event, hop, route_at, run_note
from tests.unit.asya.tasks.aws.test_task_store import record

TASK, TABLE = "t", "tasks"


def stored(batches: Sequence[Sequence[TaskEvent]]) -> tuple[DynamoTaskStore, MemoryDynamo]:
    """A store that has got these batches of reports."""
    tables = MemoryDynamo({TABLE: Table()})
    store = DynamoTaskStore(tables, TABLE, 3600.0, sleep=lambda _: None)  # type: ignore[arg-type]
    store.put_record(record(TASK), None, at(0))
    for batch in batches:
        assert store.put_hops(hop_records(batch), at(0)) == frozenset()
    return store, tables


def seen(store: DynamoTaskStore, generation: int = 0) -> tuple[Any, ...]:
    """What readers see: the timeline, the state of the task, and the steps of streams."""
    loaded = store.load(TASK, at(0))
    assert loaded is not None
    hops = list(loaded[1])
    total = fold(hops, generation)
    state = (total.percent, total.latest and total.latest.key, total.last_at, total.problem, total.route(route_at(0)))
    steps = [(each.key, each.done, each.times) for each in group_attempts(generation, hops)]
    return list(timeline(store.hops(TASK, at(0)))), state, steps


def hop_items(tables: MemoryDynamo) -> list[str]:
    return [sk for _, sk in tables.tables[TABLE].items if sk.startswith("hop")]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[TaskEvent], list[list[TaskEvent]]]:
    """Reports of a task, and batches in which they come: in any order and grouping, some of them again."""
    places = draw(
        st.lists(st.tuples(st.integers(0, 3 * SPAN), st.integers(1, 3)), unique=True, min_size=1, max_size=12)
    )
    names = tuple(f"a{number}" for number in range(3 * SPAN + 1))
    reports: list[TaskEvent] = []
    for position, attempt in places:
        steps = hop(
            TASK, position, attempt=attempt, generation=draw(st.integers(0, 1)), route=route_at(position, names)
        )
        reports += steps[: draw(st.integers(1, 3))]
    if draw(st.booleans()):
        heavy = 3 * SPAN + 1
        reports.append(event(TASK, "received", heavy))
        reports += [event(TASK, "processing", heavy, 1, run=run_note(seconds)) for seconds in (1, 2)]
    again = draw(st.lists(st.sampled_from(reports), max_size=len(reports)))
    order = draw(st.permutations([*reports, *again]))
    cuts = sorted(draw(st.sets(st.integers(1, len(order)), max_size=len(order))) | {0, len(order)})
    return reports, [order[start:end] for start, end in pairwise(cuts)]


@pytest.mark.slow
@pytest.mark.rule("13.hops.grouped")
@given(deliveries())
@settings(deadline=None, max_examples=40)
def test_any_grouping_is_seen_as_reports_one_by_one(example: tuple[list[TaskEvent], list[list[TaskEvent]]]) -> None:
    reports, batches = example
    expected, _ = stored([[report] for report in reports])
    found, _ = stored(batches)
    assert [seen(found, generation) for generation in (0, 1)] == [seen(expected, generation) for generation in (0, 1)]


@given(deliveries(), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_pages_of_a_timeline_have_each_attempt_once(
    example: tuple[list[TaskEvent], list[list[TaskEvent]]], size: int
) -> None:
    store, _ = stored(example[1])
    whole = [HopKey(each.generation, each.position, each.attempt) for each in timeline(store.hops(TASK, at(0)))]
    assert whole == sorted(set(whole))
    pages: list[HopKey] = []
    while True:
        page = list(timeline(store.hops(TASK, at(0), pages[-1] if pages else None)))[:size]
        if not page:
            break
        pages += [HopKey(each.generation, each.position, each.attempt) for each in page]
    assert pages == whole


@given(deliveries())
@settings(deadline=None, max_examples=40)
def test_a_batch_that_comes_again_after_a_crash_writes_the_same_items(
    example: tuple[list[TaskEvent], list[list[TaskEvent]]],
) -> None:
    _, batches = example
    _, once = stored(batches)
    _, twice = stored([batch for each in batches for batch in (each, each)])
    assert hop_items(twice) == hop_items(once)


def test_the_hops_of_a_batch_are_one_item_of_a_unit() -> None:
    _, tables = stored([[report for position in range(3) for report in hop(TASK, position)]])
    (key,) = hop_items(tables)
    assert key.startswith("hops#0000#000000#000001#")


def test_a_group_is_bounded_in_positions_and_in_bytes() -> None:
    many = hop_records([report for position in range(SPAN + 1) for report in hop(TASK, position)])
    assert [len(group) for group in hop_groups(many)] == [SPAN, 1]
    wide = route_at(0, tuple(f"{number:063d}" for number in range(500)))
    large = hop_records([event(TASK, "received", position, route=wide) for position in range(5)])
    assert [len(group) for group in hop_groups(large)] == [1, 1, 1, 1, 1]


def test_hops_of_one_batch_keep_heartbeats_and_problems_apart() -> None:
    reports = [*hop(TASK, 0), *hop(TASK, 1), event(TASK, "processing", 2, run=run_note(1))]
    _, tables = stored([reports])
    assert sorted(key.partition("#")[0] for key in hop_items(tables)) == ["hop", "hops"]


def test_hops_of_several_tasks_share_no_item() -> None:
    records = hop_records([*hop("a", 0), *hop("a", 1), *hop("b", 0), *hop("b", 1, generation=1)])
    assert [[(hop.id, hop.generation) for hop in group] for group in hop_groups(records)] == [
        [("a", 0), ("a", 0)],
        [("b", 0)],
        [("b", 1)],
    ]
