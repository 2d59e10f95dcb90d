"""protocol §10.cancel.unstarted: tasks that are canceled while their run waits for EMR Serverless."""

from collections.abc import Iterator

import pytest

from asya.heavy.lambdas import run_start
from tests.doubles.dispatching import dispatch_now, enqueue_ids
from tests.doubles.heavy import HeavyWorld, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    """A mesh whose runs have waited since they were formed."""
    monkeypatch.setattr(run_start, "FRESH_SECONDS", -1.0)
    with heavy_world(monkeypatch) as heavy:
        yield heavy


def wait_for_emr(world: HeavyWorld, *ids: str) -> None:
    """A run of these envelopes is formed, and EMR Serverless has no room for it."""
    world.emr.refusals = ["ThrottlingException"]
    enqueue_ids(world, *ids)
    world.dispatch()
    assert (world.emr.runs, world.manifest(1).run_id[-1]) == ({}, "1")


def ends(world: HeavyWorld) -> list[tuple[str, str]]:
    while world.complete():
        pass
    return [(body["id"], body["status"]["phase"]) for body in world.bodies("x-sink")]


@pytest.mark.rule("10.cancel.unstarted")
def test_a_run_whose_tasks_were_all_canceled_meanwhile_is_not_started(world: HeavyWorld) -> None:
    wait_for_emr(world, "a", "b")
    world.gateway.canceled = {"a", "b"}
    dispatch_now(world, "clean")
    assert world.emr.runs == {}
    assert ends(world) == [("a", "canceled"), ("b", "canceled")]
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.state == "closed"


@pytest.mark.rule("10.cancel.unstarted")
def test_a_run_with_another_task_starts(world: HeavyWorld) -> None:
    wait_for_emr(world, "a", "b")
    world.gateway.canceled = {"a"}
    dispatch_now(world, "clean")
    assert len(world.emr.runs) == 1


@pytest.mark.rule("10.cancel.unstarted", "10.run.once")
def test_a_run_that_a_lost_answer_has_started_keeps_its_job_run(world: HeavyWorld) -> None:
    wait_for_emr(world, "a")
    world.emr.start_job_run(name=world.manifest(1).run_id, clientToken="t", applicationId="00abc123")
    world.gateway.canceled = {"a"}
    dispatch_now(world, "clean")
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert record.job_run_id
