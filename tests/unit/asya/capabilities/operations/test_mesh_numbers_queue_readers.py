"""Whether a function reads a queue, and on which queues tasks may wait."""

from __future__ import annotations

import pytest

from asya.capabilities.operations.mesh_numbers import FunctionState, Mapping, queues_of, unread
from asya.protocol.envelope import Route
from asya.protocol.states import ViewStatus
from asya.tasks.view import TaskView

THERE = FunctionState()


@pytest.mark.rule("13.operations.mesh.not-read")
@pytest.mark.parametrize(
    ("mapping", "function", "reason"),
    [
        (Mapping("7", "Enabled"), THERE, None),
        (Mapping("7", "Updating"), THERE, None),
        (Mapping("7", "Enabled"), FunctionState(reserved=5), None),
        (Mapping("7", "Disabled"), THERE, "event source mapping disabled"),
        (Mapping("7", "Disabling"), THERE, "event source mapping disabled"),
        (None, THERE, "event source mapping missing"),
        (Mapping("7", "Enabled"), FunctionState(exists=False), "the function asya-shop-label is missing"),
        (Mapping("7", "Enabled"), FunctionState(reserved=0), "reserved concurrency of the function is 0"),
    ],
)
def test_a_queue_is_read_by_an_enabled_mapping_and_a_function_that_may_run(
    mapping: Mapping | None, function: FunctionState, reason: str | None
) -> None:
    found = unread(mapping, function, "asya-shop-label")
    assert (found.reason if found is not None else None) == reason


def test_the_repair_is_a_command_to_type() -> None:
    disabled = unread(Mapping("7f-3a", "Disabled"), THERE, "asya-shop-label")
    assert disabled is not None
    assert disabled.repair == "aws lambda update-event-source-mapping --uuid 7f-3a --enabled"
    throttled = unread(Mapping("7", "Enabled"), FunctionState(reserved=0), "asya-shop-label")
    assert throttled is not None
    assert throttled.repair == "aws lambda delete-function-concurrency --function-name asya-shop-label"


def task(status: ViewStatus, route: Route | None, actor: str | None = None) -> TaskView:
    return TaskView(
        id="one",
        status=status,
        progress_percent=0,
        actor=actor,
        route=route,
        created_at="",
        updated_at="",
        generation=0,
    )


def test_an_envelope_waits_where_it_was_last_or_where_it_goes_next() -> None:
    at_split = task("running", Route(("check",), "split", ("label", "x-fan-in")), "split")
    assert queues_of([at_split, task("pending", Route((), "order", ()))]) == ["label", "order", "split"]
    assert queues_of([task("succeeded", Route((), "a", ("b",))), task("paused", Route((), "c", ()))]) == []
    assert queues_of([task("running", None)]) == []
