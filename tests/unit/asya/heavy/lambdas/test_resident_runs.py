"""Resident runs: batches for idle drivers, commits while the job run goes on, and what a death settles."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from asya.heavy.aws.completion_messages import encode_commit
from asya.heavy.lambdas import reconcile
from asya.protocol.job_runs import Place, RunFolder, presence_key
from asya.protocol.mesh_table import SparkJob
from tests.doubles.heavy import BUCKET, HeavyWorld, heavy_world
from tests.doubles.resident import LINGERING, arrive, commit, idle, put, record, start_resident


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    monkeypatch.setattr(reconcile, "MIN_AGE", timedelta(0))
    with heavy_world(monkeypatch, LINGERING) as world:
        yield world


def batch(world: HeavyWorld, number: int, place: int = 1) -> dict[str, Any]:
    """The first line of a batch of a resident run."""
    key = f"{RunFolder('clean', 0, Place(place, number)).prefix}manifest.json"
    body = world.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    content: dict[str, Any] = json.loads(body.splitlines()[0])
    return content


def sent(world: HeavyWorld) -> list[str]:
    return [body["id"] for body in world.bodies("publish")]


@pytest.mark.rule("10.resident.commit")
def test_10_a_commit_routes_results_while_the_job_run_goes_on(world: HeavyWorld) -> None:
    assert start_resident(world).state == "closed"
    assert sent(world) == ["a", "b", "c"]
    assert world.emr.runs["run1"]["state"] == "RUNNING"


@pytest.mark.rule("10.resident.limit")
def test_10_a_resident_run_may_take_max_run(world: HeavyWorld) -> None:
    start_resident(world)
    request = world.emr.runs["run1"]["request"]
    assert request["executionTimeoutMinutes"] == 60
    arguments = request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert arguments[-6:] == ["--linger", "300", "--limit", "60", "--region", "us-east-1"]


@pytest.mark.rule("10.resident.at-once", "10.resident.place")
@pytest.mark.slow
def test_10_an_idle_run_gets_the_next_batch_at_once(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    assert batch(world, 1)["number"] == 2
    assert list(world.emr.runs) == ["run1"]
    batch_run = record(world, 2)
    assert (batch_run.state, batch_run.job_run_id, batch_run.place) == ("started", "run1", Place(1, 1))
    assert world.items("PENDING#") == []
    world.complete()
    assert "d" in world.reported_ids("processing")
    commit(world, 2, 1, Place(1, 1))
    world.complete()
    assert (sent(world), record(world, 2).state) == (["a", "b", "c", "d"], "closed")


@pytest.mark.rule("10.resident.idle")
@pytest.mark.parametrize("why", ["stale", "busy", "unknown"])
def test_10_a_run_that_is_not_idle_gets_no_batch(world: HeavyWorld, why: str) -> None:
    start_resident(world)
    if why == "stale":
        idle(world, batch=1, age=6.0)
    elif why == "busy":
        idle(world, batch=2)
    else:
        put(world, presence_key("clean", 1), b"no sign of life")
    arrive(world, "d", "e", "f")
    world.dispatch()
    assert list(world.emr.runs) == ["run1", "run2"]


@pytest.mark.rule("10.resident.idle")
def test_10_an_idle_run_with_other_code_is_closed(world: HeavyWorld) -> None:
    start_resident(world)
    actors = LINGERING.actors
    changed = SparkJob(job="flights.clean", linger=300.0, max_run=3600.0, conf={"spark.a": "1"})
    world.table = replace(LINGERING, actors={**actors, "clean": replace(actors["clean"], spark=changed)})
    arrive(world, "d", "e", "f")
    world.dispatch()
    assert batch(world, 1) == {"closed": "changed"}
    assert list(world.emr.runs) == ["run1", "run2"]


@pytest.mark.rule("10.resident", "10.resident.place")
def test_10_a_driver_that_closed_first_gets_no_batch(world: HeavyWorld) -> None:
    start_resident(world)
    put(world, f"{RunFolder('clean', 0, Place(1, 1)).prefix}manifest.json", b'{"closed":"linger"}')
    arrive(world, "d", "e", "f")
    world.dispatch()
    assert list(world.emr.runs) == ["run1", "run2"]
    assert (record(world, 2).place, record(world, 2).job_run_id) == (None, "run2")
    assert [(each.number, each.is_closed) for each in world.services.residents.all("clean")] == [(1, True), (2, False)]


VICTIM = {"id": "victim", "route": {"prev": [], "curr": "clean", "next": ["publish"]}, "payload": {"n": 0}}
FORGED_BATCHES: dict[str, Any] = {
    "a closing mark": {"closed": "linger"},
    "a closing mark of another form": {"closed": "mine", "number": 0},
    "the batch of another run": {"number": 7, "actor": "clean"},
    "the next run": {"number": 2, "actor": "clean", "members": [{"id": "victim", "envelope": VICTIM}]},
    "the next run of another actor": {"number": 2, "actor": "stats"},
    "a number that is a text": {"number": "2"},
    "a number that is true": {"number": True},
    "a number below zero": {"number": -2},
    "a large number": {"number": 10**30},
    "a list": [{"number": 2}],
    "nothing": None,
}


@pytest.mark.rule("10.resident", "10.manifest")
@pytest.mark.parametrize("forged", FORGED_BATCHES)
def test_10_a_forged_batch_file_routes_nothing_of_others(world: HeavyWorld, forged: str) -> None:
    """Code of a run that lingers may write it before the dispatcher. It then has a result for the batch."""
    start_resident(world)
    assert sent(world) == ["a", "b", "c"]
    place = Place(1, 1)
    content = json.dumps(FORGED_BATCHES[forged]).encode()
    put(world, f"{RunFolder('clean', 0, place).prefix}manifest.json", content)
    arrive(world, "d", "e", "f")
    world.dispatch()
    commit(world, 2, 3, place)
    world.complete()
    if record(world, 2).place is None:  # a job run of its own, whose results are in its own folder
        assert (sent(world), list(world.emr.runs)) == ([], ["run1", "run2"])
        commit(world, 2, 3)
        world.complete()
    # The completion reads the manifest of run 2 that the dispatcher has written.
    assert sent(world) == ["d", "e", "f"]


@pytest.mark.rule("10.resident.commit")
@pytest.mark.parametrize("place", [None, Place(1, 1), Place(1, 2), Place(1, 7)])
def test_10_a_result_in_the_folder_of_another_run_routes_nothing(world: HeavyWorld, place: Place | None) -> None:
    """Run 1 lingers, and its code writes a commit that names run 2, into its own folder and those of its batches."""
    start_resident(world)
    assert sent(world) == ["a", "b", "c"]
    idle(world, batch=2)  # not idle, so run 2 is a job run of its own
    arrive(world, "d", "e", "f")
    world.dispatch()
    assert list(world.emr.runs) == ["run1", "run2"]
    folder = RunFolder("clean", 1) if place is None else RunFolder("clean", 2, place)
    commit(world, 2, 3, place, event=False)
    key = f"{folder.attempts}20260101T000000-a1/commit.json"
    if place is None:
        put(world, key, json.dumps({"run_id": "asya.flights.clean.0000000002", "attempt": "a1"}).encode())
        world.s3.delete_object(Bucket=BUCKET, Key=f"{RunFolder('clean', 2).attempts}20260101T000000-a1/commit.json")
    world.put("x-completion", encode_commit(BUCKET, key))
    world.complete()
    assert sent(world) == []
    assert record(world, 2).state == "started"
    commit(world, 2, 3)
    world.complete()
    assert sent(world) == ["d", "e", "f"]


@pytest.mark.rule("10.resident.untaken")
def test_10_a_batch_that_nobody_took_waits_again_uncharged(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    world.set_state("run1", "FAILED", details="killed")
    while world.complete():
        pass
    assert record(world, 2).state == "closed"
    (item,) = world.items("PENDING#")
    member = json.loads(item["member"]["B"])
    assert (member["id"], member["attempt"], member.get("deaths", 0)) == ("d", 1, 0)
    assert world.services.residents.all("clean") == []
    assert sent(world) == ["a", "b", "c"]


@pytest.mark.rule("10.resident.death")
def test_10_a_death_settles_the_open_batch_only(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d", "e")
    world.dispatch()
    journal = {
        "run_id": "asya.flights.clean.0000000002",
        "attempt": "a1",
        "sequence": 1,
        "updated_at": "2026-01-01T00:00:00Z",
        "parts": [],
        "at_work": [0],
        "started": 1,
        "stage": "working",
    }
    folder = RunFolder("clean", 2, Place(1, 1))
    put(world, f"{folder.attempts}20260101T000000-a1/journal-0.json", json.dumps(journal).encode())
    world.set_state("run1", "FAILED", details="out of memory")
    while world.complete():
        pass
    assert sent(world) == ["a", "b", "c"]
    (retried,) = world.bodies("clean")
    assert (retried["id"], retried["status"]["error"]["type"]) == ("d", "SparkJobFailed")
    (item,) = world.items("PENDING#")
    assert json.loads(item["member"]["B"])["id"] == "e"


@pytest.mark.rule("10.resident.commit")
def test_10_the_reconciler_finds_a_commit_without_a_notification(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    commit(world, 2, 1, Place(1, 1), event=False)
    world.reconcile()
    while world.complete():
        pass
    assert "d" in sent(world)


@pytest.mark.rule("10.resident.death")
def test_10_the_reconciler_finds_the_end_of_an_idle_run(world: HeavyWorld) -> None:
    start_resident(world)
    world.set_state("run1", "SUCCESS", event=False)
    world.reconcile()
    world.complete()
    assert world.services.residents.all("clean") == []
    assert record(world, 1).job_state == "SUCCESS"


@pytest.mark.rule("10.resident.commit")
def test_10_a_commit_that_is_not_there_changes_nothing(world: HeavyWorld) -> None:
    arrive(world, "a", "b", "c")
    world.dispatch()
    world.put("x-completion", encode_commit(BUCKET, f"{RunFolder('clean', 1).attempts}a1/commit.json"))
    world.put("x-completion", encode_commit(BUCKET, "runs/clean/../commit.json"))
    world.complete()
    assert record(world, 1).state == "started"


@pytest.mark.rule("10.resident.cancel")
def test_10_canceling_all_tasks_of_a_batch_cancels_the_job_run(world: HeavyWorld) -> None:
    start_resident(world)
    at = {"headers": {"x-asya-callback": "https://gateway"}}
    world.send("d", **at)
    world.enqueue()
    world.dispatch()
    while world.complete():
        pass
    world.gateway.canceled.add("d")
    world.put("x-completion", json.dumps({"detail-type": "asya.task-canceled", "detail": {"taskId": "d"}}))
    world.complete()
    assert batch(world, 2) == {"closed": "canceled"}
    assert world.emr.canceled == ["run1"]


@pytest.mark.rule("10.resident.cancel")
def test_10_a_cancellation_spares_the_next_batch(world: HeavyWorld) -> None:
    start_resident(world)
    world.send("d", headers={"x-asya-callback": "https://gateway"})
    world.enqueue()
    world.dispatch()
    # The driver has finished it, nobody has routed it yet, and the next batch is at work.
    idle(world, batch=2)
    arrive(world, "e", "f", "g")
    world.dispatch()
    assert batch(world, 2)["number"] == 3
    world.gateway.canceled.add("d")
    world.put("x-completion", json.dumps({"detail-type": "asya.task-canceled", "detail": {"taskId": "d"}}))
    while world.complete():
        pass
    assert world.emr.canceled == []


def watch(world: HeavyWorld, number: int, turn: int) -> None:
    """Poll a run once."""
    name = f"asya.flights.clean.{number:010d}"
    request = {"run_id": name, "job_run_id": "run1", "turn": turn}
    world.put("x-completion", json.dumps({"detail-type": "asya.watch-run", "detail": request}))
    while world.complete():
        pass


@pytest.mark.rule("10.resident.untaken")
def test_10_the_watch_finds_a_batch_of_a_run_that_has_ended(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    world.set_state("run1", "FAILED", event=False)
    watch(world, 2, 2)
    assert record(world, 2).state == "started"
    watch(world, 2, 3)
    assert record(world, 2).state == "closed"
    assert len(world.items("PENDING#")) == 1


@pytest.mark.rule("10.resident.untaken")
def test_10_a_driver_that_takes_no_batch_is_canceled(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    watch(world, 2, 14)
    assert world.emr.canceled == []
    watch(world, 2, 15)
    assert (world.emr.canceled, batch(world, 2)) == (["run1"], {"closed": "ended"})


@pytest.mark.rule("10.resident.limit")
@pytest.mark.parametrize(("age", "canceled"), [(1.5, []), (4.5, ["run1"])])
def test_10_a_batch_past_its_limit_cancels_the_job_run(world: HeavyWorld, age: float, canceled: list[str]) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    # Its limit is a minute for its envelope and 25 for a start, and a minute of grace.
    began = world.services.now() - timedelta(minutes=24 + age)
    put(world, f"{RunFolder('clean', 2, Place(1, 1)).attempts}{began:%Y%m%dT%H%M%S}-a1/journal-0.json", b"{}")
    watch(world, 2, 4)
    assert world.emr.canceled == canceled


@pytest.mark.rule("10.resident.commit")
def test_10_the_watch_finds_a_commit_without_a_notification(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    commit(world, 2, 1, Place(1, 1), event=False)
    watch(world, 2, 1)
    assert record(world, 2).state == "closed"


@pytest.mark.rule("10.resident.room")
@pytest.mark.parametrize("by", ["permits", "refusal"])
@pytest.mark.slow
def test_10_an_idle_run_makes_room_for_another_actor(world: HeavyWorld, by: str) -> None:
    if by == "permits":
        world.table = replace(LINGERING, spark=replace(LINGERING.spark, max_concurrent_runs=1))
    start_resident(world)
    if by == "refusal":
        world.emr.refusals = ["ServiceQuotaExceededException"]
    world.send("s", actor="stats")
    world.enqueue("stats")
    world.dispatch()
    assert batch(world, 1) == {"closed": "room"}
    assert list(world.emr.runs) == ["run1"]
    world.set_state("run1", "SUCCESS")
    world.complete()
    world.dispatch()
    assert list(world.emr.runs) == ["run1", "run2"]


@pytest.mark.rule("10.resident.plain")
def test_10_a_returned_half_gets_a_job_run_of_its_own(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d", "e")
    world.dispatch()
    folder = RunFolder("clean", 2, Place(1, 1))
    # Its driver died before any envelope was at work.
    journal = {"run_id": "r", "attempt": "a1", "sequence": 1, "updated_at": "", "parts": [], "stage": "starting"}
    put(world, f"{folder.attempts}20260101T000000-a1/journal-0.json", json.dumps(journal).encode())
    world.set_state("run1", "FAILED", details="out of memory")
    while world.complete():
        pass
    world.dispatch()
    assert [world.manifest(3).linger, list(world.emr.runs)] == [0.0, ["run1", "run2"]]


@pytest.mark.rule("10.resident.usage")
def test_10_the_usage_is_on_record_for_the_resident_run_alone(world: HeavyWorld) -> None:
    start_resident(world)
    arrive(world, "d")
    world.dispatch()
    commit(world, 2, 1, Place(1, 1))
    world.complete()
    world.emr.runs["run1"]["billedResourceUtilization"] = {"vCPUHour": 2.0}
    world.set_state("run1", "SUCCESS")
    world.complete()
    usages = [record(world, number).usage for number in (1, 2)]
    assert [usage and usage.vcpu_hours for usage in usages] == [2.0, None]


@pytest.mark.rule("10.resident.room")
def test_10_a_closed_run_whose_end_is_lost_keeps_no_permit(world: HeavyWorld) -> None:
    world.table = replace(LINGERING, spark=replace(LINGERING.spark, max_concurrent_runs=1))
    start_resident(world)
    world.send("s", actor="stats")
    world.enqueue("stats")
    world.dispatch()
    world.set_state("run1", "SUCCESS", event=False)
    world.reconcile()
    world.complete()
    world.dispatch()
    assert list(world.emr.runs) == ["run1", "run2"]
