"""Operators begin, show, resume and cancel backfills; x-triggers starts their tasks."""

from typing import Any

import pytest

from asya.capabilities.triggers.operators.answers import BackfillList, BackfillView
from asya.protocol import names
from asya.testing import Mesh, RefusedError
from tests.unit.asya.gateway.triggers.test_routes_trigger_routes import call, fire

RANGE = {"trigger": "nightly", "from": "2026-11-01", "to": "2026-11-10"}


def begin(mesh: Mesh, **fields: Any) -> BackfillView:
    found: BackfillView = mesh.ask("POST", "/api/v1/backfills", BackfillView, body=RANGE | fields)
    return found


def shown(mesh: Mesh, backfill: BackfillView) -> BackfillView:
    found: BackfillView = mesh.ask("GET", f"/api/v1/backfills/{backfill.id}", BackfillView)
    return found


@pytest.mark.rule("16.backfill", "16.backfill.once", "16.backfill.at-once", "13.started-by")
@pytest.mark.parametrize("seed", range(2))
def test_16_a_backfill_killed_twice_starts_each_slot_once(mesh: Mesh, seed: int) -> None:
    """Ends of tasks start the next ones; no minute passes."""
    fire(mesh, at="2026-11-03T02:00")
    mesh.cloud.simulation.random.seed(seed)
    mesh.cloud.faults.deaths[names.TRIGGERS] += 2
    mesh.cloud.faults.copies[names.TRIGGERS] += 2
    backfill = begin(mesh, at_once=3)
    assert (backfill.state, backfill.total, backfill.waiting) == ("running", 10, 10)
    mesh.cloud.run_until_idle()
    ended = shown(mesh, backfill)
    assert (ended.state, ended.succeeded, ended.failed, ended.before, ended.waiting) == ("done", 9, 0, 1, 0)
    assert sorted(run.result["day"] for run in mesh.runs()) == [f"2026-11-{day:02d}" for day in range(1, 11)]
    newest = mesh.ask("GET", f"/api/v1/mesh/{mesh.runs()[0].id}", dict)
    assert (newest["owner"], newest["started_by"]["kind"], newest["started_by"]["name"]) == (
        "trigger:nightly",
        "backfill",
        backfill.id,
    )
    assert [each.id for each in mesh.ask("GET", "/api/v1/backfills", BackfillList).items] == [backfill.id]


@pytest.mark.rule("16.backfill.at-once")
def test_16_the_sweep_moves_a_backfill_on_whose_messages_are_lost(mesh: Mesh) -> None:
    """Within a minute."""
    backfill = begin(mesh)
    mesh.cloud.queues.queues[names.queue_name("shop", names.TRIGGERS)].messages.clear()
    mesh.cloud.run_until_idle()
    assert shown(mesh, backfill).waiting == 10
    mesh.travel(minutes=1)
    assert shown(mesh, backfill).state == "done"


@pytest.mark.rule("16.backfill.at-once")
def test_16_the_overlap_of_the_trigger_does_not_hold(mesh: Mesh) -> None:
    """No slot is skipped while others run."""
    backfill = begin(mesh, trigger="careful", at_once=5)
    mesh.cloud.run_until_idle()
    assert (shown(mesh, backfill).succeeded, len(mesh.runs())) == (10, 10)


@pytest.mark.rule("16.backfill.stop")
@pytest.mark.slow
def test_16_a_stopped_backfill_goes_on_when_it_is_resumed(mesh: Mesh) -> None:
    """After the cause is repaired."""
    mesh.fail("greet", ValueError("no such day"), times=2)
    backfill = begin(mesh, stop_after=2)
    mesh.cloud.run_until_idle()
    stopped = shown(mesh, backfill)
    assert (stopped.state, stopped.failed, stopped.waiting) == ("stopped", 2, 8)
    assert [each.problem for each in stopped.failures] == ["ValueError: no such day"] * 2
    mesh.travel(minutes=2)
    assert shown(mesh, backfill).waiting == 8
    for _ in range(2):
        mesh.ask("POST", f"/api/v1/backfills/{backfill.id}/resume", BackfillView)
    mesh.cloud.run_until_idle()
    ended = shown(mesh, backfill)
    assert (ended.state, ended.failed, ended.succeeded) == ("done", 2, 8)


@pytest.mark.rule("16.backfill.cancel")
def test_16_a_canceled_backfill_cancels_its_running_tasks(mesh: Mesh) -> None:
    """A repeated call changes nothing; one that has ended stays as it is."""
    backfill = begin(mesh, at_once=2)
    queue = mesh.cloud.queues.queues[names.queue_name("shop", "greet")]
    mesh.cloud.sources.functions.pop(queue.name)  # the actor does not answer
    mesh.cloud.advance(30)
    assert [each.status for each in shown(mesh, backfill).running] == ["pending", "pending"]
    for _ in range(2):
        view = mesh.ask("DELETE", f"/api/v1/backfills/{backfill.id}", BackfillView)
        assert view.state == "canceled"
    mesh.cloud.advance(30)
    ended = shown(mesh, backfill)
    assert (ended.state, ended.running, ended.failed, ended.waiting) == ("canceled", [], 2, 8)
    assert {run.status for run in mesh.runs()} == {"canceled"}


@pytest.mark.rule("16.backfill", "16.backfill.repeated")
def test_16_a_dry_run_counts_and_a_repeated_key_begins_one(mesh: Mesh) -> None:
    """Another request with the key is refused."""
    assert (begin(mesh, dry_run=True).total, mesh.ask("GET", "/api/v1/backfills", BackfillList).items) == (10, [])
    body = '{"trigger": "nightly", "from": "2026-11-01", "to": "2026-11-02", "at_once": AT}'
    answers = [
        call(mesh, "POST", "/api/v1/backfills", body.replace("AT", at), **{"Idempotency-Key": "k"}) for at in "112"
    ]
    assert [status for status, _ in answers] == [201, 201, 409]
    mesh.cloud.run_until_idle()
    assert len(mesh.ask("GET", "/api/v1/backfills", BackfillList).items) == 1
    assert len(mesh.runs()) == 2


@pytest.mark.rule("16.backfill.repeated")
@pytest.mark.slow
def test_16_a_repeated_key_has_the_same_range(mesh: Mesh) -> None:
    """A range into the future ends at the first call, however late the repetition comes."""
    body = '{"trigger": "nightly", "from": "2026-11-01", "to": "%s"}'
    answers = []
    for last, key in (
        ("2999-01-01", "a"),
        ("2999-01-01", "a"),
        ("2026-11-02", "a"),
        ("2026-11-02", "b"),
        ("2026-11-03", "b"),
    ):
        answers.append(call(mesh, "POST", "/api/v1/backfills", body % last, **{"Idempotency-Key": key}))
        mesh.cloud.advance(90_000)
    assert [status for status, _ in answers] == [201, 201, 409, 201, 409]


@pytest.mark.rule("16.backfill", "16.calls")
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"trigger": "nope"}, "there is no trigger 'nope'"),
        ({"trigger": "silent"}, "is off"),
        ({"trigger": "wrong", "from": "2025-01-01"}, '7 is not of type "string"'),
        ({"from": "soon"}, "from should be a time"),
        ({"at_once": 1000}, "from 1 to 100"),
        ({"since": "2026-11-01"}, "unknown field"),
    ],
)
def test_16_a_wrong_backfill_is_refused(mesh: Mesh, fields: dict[str, Any], problem: str) -> None:
    """Before it starts anything."""
    with pytest.raises(RefusedError, match=problem):
        begin(mesh, **fields)


@pytest.mark.rule("16.calls")
@pytest.mark.parametrize(("method", "action"), [("GET", ""), ("DELETE", ""), ("POST", "/resume")])
def test_16_an_unknown_backfill_is_404(mesh: Mesh, method: str, action: str) -> None:
    """As a trigger is."""
    assert call(mesh, method, f"/api/v1/backfills/nope{action}")[0] == 404
