"""The completion trusts the state of the job run, not the event that reports it (`protocol §10`)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.heavy import APPLICATION, HeavyWorld, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        heavy.send("a", {"n": 1})
        heavy.enqueue()
        heavy.dispatch()
        yield heavy


def put_event(world: HeavyWorld, **detail: str) -> None:
    known = {"applicationId": APPLICATION, "jobRunId": "run1", "jobRunName": world.emr.runs["run1"]["name"]}
    event: dict[str, Any] = {"detail-type": "EMR Serverless Job Run State Change", "detail": {**known, **detail}}
    world.put("x-completion", json.dumps(event))


def is_open(world: HeavyWorld) -> bool:
    record = world.services.records.get("clean", 1)
    return record is not None and record.state != "closed"


@pytest.mark.rule("10.event-of-a-run")
@pytest.mark.parametrize("state", ["FAILED", "SUCCESS", "CANCELLED"])
def test_an_end_that_the_job_run_denies_changes_nothing(world: HeavyWorld, state: str) -> None:
    world.set_state("run1", "RUNNING", event=False)
    put_event(world, state=state)
    world.complete()
    assert is_open(world)
    assert world.bodies("x-sink") == []

    # The true end is routed at once: the false one left no lease.
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS")
    world.complete()
    assert not is_open(world)


@pytest.mark.rule("10.event-of-a-run")
def test_the_end_of_another_job_run_does_not_end_this_one(world: HeavyWorld) -> None:
    world.emr.runs["run9"] = {"name": "someone-else", "state": "FAILED", "stateDetails": ""}
    world.set_state("run1", "RUNNING", event=False)
    world.services.records.get("clean", 1)
    put_event(world, state="FAILED", jobRunId="run9")
    world.complete()
    assert is_open(world)


@pytest.mark.rule("10.event-of-a-run")
def test_the_state_of_the_job_run_counts_not_that_of_the_event(world: HeavyWorld) -> None:
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS", event=False)
    put_event(world, state="FAILED")
    world.complete()
    record = world.services.records.get("clean", 1)
    assert record is not None
    assert (record.state, world.services.manifests.read("clean", 1) is not None) == ("closed", True)
