"""The marks of how old the ends in `x-ends` are (`protocol §13`, backstop)."""

from typing import Any

import pytest

from asya.gateway.ends_delay import LATE_AGE
from asya.gateway.lambdas.report_queues import ReportQueues
from asya.protocol.times import format_time
from tests.doubles.mesh_world import MeshWorld, batch_failures
from tests.doubles.report_queues import Clock, batch, body, foreign, items
from tests.doubles.tasks import at, event

pytestmark = pytest.mark.lists_roles


@pytest.mark.rule("13.backstop.ends")
def test_an_undeliverable_foreign_end_does_not_stop_the_deadline_sweep(
    world: MeshWorld, meshes: ReportQueues, clock: Clock
) -> None:
    world.gateway.status = 503
    text = body(foreign(world, event("t", "failed", 1)))
    for seconds in range(0, 400, 80):
        clock.time = at(3600 + seconds)
        answer = meshes.process(batch("x-ends", text, age=3000.0, now=clock.time, receive_counts={0: 9}))
        assert batch_failures(answer) == ["message-0"]
        ends = items(world)
        assert ("SWEEP", "ends-late") not in ends
        # One receipt alone may be the first one after an outage.
        assert (("SWEEP", "ends-fresh") in ends) == (seconds >= 60)
    assert ends["SWEEP", "ends-fresh"]["at"]["S"] == format_time(clock.time)


@pytest.mark.rule("13.backstop.ends")
def test_a_late_end_of_this_mesh_outweighs_foreign_messages(
    world: MeshWorld, meshes: ReportQueues, clock: Clock
) -> None:
    world.gateway.status = 503
    text = body(foreign(world, event("t", "failed", 1)))
    for seconds, more in ((0, ()), (50, (body(event("o", "failed", 1)),)), (100, ()), (300, ()), (480.5, ())):
        clock.time = at(3600 + seconds)
        meshes.process(batch("x-ends", text, *more, age=3000.0, now=clock.time))
    assert {sk for pk, sk in items(world) if pk == "SWEEP"} == {"ends-late"}


@pytest.mark.rule("13.backstop.ends")
@pytest.mark.parametrize(("age", "kinds"), [(1.0, {"ends-fresh"}), (LATE_AGE.total_seconds() + 5, {"ends-late"})])
def test_the_age_of_ends_leaves_a_mark(world: MeshWorld, queues: ReportQueues, age: float, kinds: set[str]) -> None:
    queues.process(batch("x-reports", body(event("t", "received")), age=age))
    assert not any(pk == "SWEEP" for pk, _ in items(world))
    queues.process(batch("x-ends", body(event("t", "failed", 1)), age=age))
    assert {sk for pk, sk in items(world) if pk == "SWEEP"} == kinds


@pytest.mark.rule("13.backstop.ends")
def test_ends_that_cannot_be_written_leave_no_fresh_mark(
    world: MeshWorld, queues: ReportQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(*_: object, **__: object) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr("asya.tasks.aws.tasks.Tasks.report", report)
    assert batch_failures(queues.process(batch("x-ends", body(event("t", "failed", 1))))) == ["message-0"]
    assert not any(pk == "SWEEP" for pk, _ in items(world))


class KilledError(BaseException):
    """The process dies."""


@pytest.mark.rule("13.backstop.ends")
@pytest.mark.parametrize("receives", [1, 2])
def test_a_process_that_dies_while_it_writes_a_late_end_leaves_a_mark(
    world: MeshWorld, queues: ReportQueues, monkeypatch: pytest.MonkeyPatch, receives: int
) -> None:
    def report(*_: object, **__: object) -> Any:
        raise KilledError

    monkeypatch.setattr("asya.tasks.aws.tasks.Tasks.report", report)
    age = LATE_AGE.total_seconds() + 5
    with pytest.raises(KilledError):
        queues.process(batch("x-ends", body(event("t", "failed", 1)), age=age, receive_counts={0: receives}))
    assert {sk for pk, sk in items(world) if pk == "SWEEP"} == {"ends-late"}
