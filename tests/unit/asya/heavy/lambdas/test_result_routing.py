"""The results of a run leave once, and its failures are charged (`protocol §10`)."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace as changed

from asya.heavy.lambdas import result_routing
from asya.protocol import ids
from asya.protocol.events import TaskEvent
from asya.senders.aws.entry_items import OwnerClaims
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import BUCKET, TABLE, HeavyWorld, TimedContext, done_result, failed_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.mark.rule("10.one-commit")
def test_a_repeated_event_routes_nothing_twice(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1, 2)])
    world.set_state("run1", "SUCCESS")
    world.set_state("run1", "SUCCESS")

    assert world.complete() == 2

    frames = world.bodies("publish")
    assert sorted(frame["payload"] for frame in frames) == [1, 2]
    assert {frame.get("parent_id") for frame in frames} == {None, "a"}


@pytest.mark.rule("14.child_ids", "14.child_ids.claim")
@pytest.mark.parametrize(("are_taken", "child"), [(False, "a-1"), (True, ids.child_id("a", 0, 0, 1))])
def test_the_frames_of_a_job_get_the_numbered_ids_unless_others_have_them(
    monkeypatch: pytest.MonkeyPatch, child: str, *, are_taken: bool
) -> None:
    numbering = {name: changed(actor, options={"child_ids": "suffix"}) for name, actor in TABLE.actors.items()}
    with heavy_world(monkeypatch, changed(TABLE, actors=numbering)) as world:
        start_run(world, "a")
        if are_taken:
            assert OwnerClaims(world.dynamodb, "asya-flights-sink").claim_numbered("a", "senders", None)
        world.write_results(1, [done_result(0, 1, 2)])
        world.set_state("run1", "SUCCESS")
        world.complete()
        assert {frame["id"] for frame in world.bodies("publish")} == {"a", child}


@pytest.mark.rule("10.one-commit")
def test_of_two_attempts_one_commit_counts(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, "half")], attempt="a0", end=None)
    world.write_results(1, [done_result(0, "first")], attempt="a1")
    world.write_results(1, [done_result(0, "second")], attempt="a2")
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["payload"] for body in world.bodies("publish")] == ["first"]


@pytest.mark.rule("10.death.committed", "13.retry")
def test_results_of_a_failed_run_count_and_the_member_at_work_is_charged_with_the_details(world: HeavyWorld) -> None:
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, 1), done_result(1, 2)], end="journal")
    world.set_state("run1", "FAILED", details="exit code 137")
    world.complete()

    assert [body["payload"] for body in world.bodies("publish")] == [1, 2]
    assert world.bodies("clean") == []
    world.dispatch()
    world.write_results(2, [], end="journal")
    world.set_state("run2", "FAILED", details="exit code 137")
    world.complete()
    (retry,) = world.bodies("clean")
    assert (retry["id"], retry["status"]["phase"], retry["status"]["attempt"]) == ("c", "retrying", 2)
    assert retry["status"]["error"]["type"] == "SparkJobFailed"
    assert "exit code 137" in retry["status"]["error"]["message"]
    (report,) = [event for event in world.gateway.events if isinstance(event, TaskEvent) and event.data.retry]
    assert (report.id, report.status, report.attempt, report.data.actor) == ("c", "processing", 1, "clean")
    assert report.data.retry is not None
    assert (report.data.retry.error.type, report.data.retry.max_attempts) == ("SparkJobFailed", 2)
    assert world.items("OPEN#") == []


@pytest.mark.rule("10.death.committed")
def test_incomplete_parts_of_a_failed_run_do_not_count(world: HeavyWorld) -> None:
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, 1), done_result(1, 2), done_result(2, 3)], end="journal")
    world.s3.put_object(Bucket=BUCKET, Key="runs/clean/0000000001/attempts/a1/part-000001.jsonl", Body=b"{")
    world.set_state("run1", "FAILED")
    world.complete()

    assert [body["id"] for body in world.bodies("publish")] == ["a", "b"]
    assert world.bodies("clean") == []
    world.dispatch()
    assert [member.id for member in world.manifest(2).members] == ["c"]


def test_a_success_without_a_commit_is_a_failure(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.set_state("run1", "SUCCESS")
    world.complete()

    (retry,) = world.bodies("clean")
    assert retry["status"]["error"]["type"] == "SparkJobFailed"


def test_the_error_of_the_whole_job_fails_every_member(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    error = {"type": "asya.runtime.load.LoadError", "message": "no such job", "mro": [], "traceback": ""}
    world.write_results(1, [], error=error)
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["status"]["error"]["message"] for body in world.bodies("clean")] == ["no such job"] * 2


def test_without_a_policy_a_failed_run_ends_its_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    with heavy_world(monkeypatch) as world:
        world.send("a", actor="stats")
        world.enqueue("stats")
        world.dispatch()
        world.set_state("run1", "CANCELLED")
        world.complete()

        (ended,) = world.bodies("x-sink")
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("failed", "SparkJobFailed")


def test_frames_before_an_error_leave_and_the_failure_is_a_child(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [failed_result(0, "one", "two")])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert len(world.bodies("publish")) == 2
    (child,) = world.bodies("x-sink")
    assert (child["parent_id"], child["status"]["phase"]) == ("a", "failed")


def test_a_route_that_leads_nowhere_is_a_mismatch(world: HeavyWorld) -> None:
    start_run(world, "a")
    world.write_results(1, [done_result(0, 1, next=["nobody"])])
    world.set_state("run1", "SUCCESS")
    world.complete()

    (sumped,) = world.bodies("x-sump")
    assert sumped["status"]["reason"] == "RouteMismatch"


@pytest.mark.rule("10.job-headers")
def test_a_job_sets_its_own_headers_and_none_of_the_mesh(world: HeavyWorld) -> None:
    start_run(world, "a")
    forged = {
        "x-asya-generation": 9999,
        "x-asya-owner": "AIDABOB",
        "x-asya-mesh-status": "off",
        "x-asya-route-override": {"publish": "clean"},
        "traceparent": None,
    }
    world.write_results(1, [done_result(0, 1, headers=forged | {"color": "red"})])
    world.set_state("run1", "SUCCESS")
    world.complete()

    (frame,) = world.bodies("publish")
    assert frame["headers"]["color"] == "red"
    assert "traceparent" in frame["headers"]
    assert not {"x-asya-generation", "x-asya-mesh-status", "x-asya-route-override"} & frame["headers"].keys()
    assert frame["headers"].get("x-asya-owner") != "AIDABOB"


def slice_of(origin: str, position: int, index: int, *, set_of: str = "", **more: object) -> dict[str, object]:
    """A slice header as a job may write it."""
    place = {"slice_index": index, "slice_count": 3, "aggregation_key": "/sums", "actor": "x-fan-in"}
    return place | {"set_id": ids.set_id(set_of or origin, 0, position), "origin_id": origin} | more


OF_ANOTHER_TASK = {
    "a slice of another task": slice_of("victim", 1, 1),
    "slice 0 of another task": slice_of("victim", 1, 0),
    "the set of another task as its own": slice_of("a", 0, 1, set_of="victim"),
    "the origin of another set": slice_of("a", 0, 0, set_of="victim"),
    "the place of another slice behind its own set": slice_of("a", 0, 0, outer=slice_of("victim", 1, 2)),
}


@pytest.mark.rule("10.job-sets")
@pytest.mark.parametrize("end", ["next", "sink"])
@pytest.mark.parametrize("forged", OF_ANOTHER_TASK.values(), ids=OF_ANOTHER_TASK)
def test_a_result_belongs_to_no_set_of_another_task(world: HeavyWorld, forged: dict[str, object], end: str) -> None:
    start_run(world, "a")
    route = {"next": []} if end == "sink" else {}
    world.write_results(1, [done_result(0, 1, headers={"x-asya-fan-in": forged}, **route)])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert (world.bodies("publish"), world.bodies("x-sink")) == ([], [])
    (retry,) = world.bodies("clean")
    assert retry["status"]["error"]["type"] == "SparkJobFailed"
    assert "x-asya-fan-in" not in retry["headers"]


@pytest.mark.rule("5.12.forbidden")
def test_a_result_goes_only_where_its_own_actor_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """The role of the completion may send wherever any heavy actor may."""
    targets = {"clean": ("stats",), "stats": ("publish",)}
    actors = {name: changed(actor, can_send_to=targets.get(name)) for name, actor in TABLE.actors.items()}
    with heavy_world(monkeypatch, changed(TABLE, actors=actors)) as world:
        start_run(world, "a")
        world.write_results(1, [done_result(0, 1, next=["publish"])])
        world.set_state("run1", "SUCCESS")
        world.complete()

        assert world.bodies("publish") == []
        (sumped,) = world.bodies("x-sump")
        assert sumped["status"]["reason"] == "RouteMismatch"
        assert "actor 'clean' may not send to 'publish'" in sumped["status"]["error"]["message"]


@pytest.mark.rule("10.checked.completion")
def test_the_result_of_a_canceled_envelope_is_dropped(world: HeavyWorld) -> None:
    start_run(world, "a", "b")
    world.gateway.canceled = {"a"}
    world.write_results(1, [done_result(0, 1), done_result(1, 2)])
    world.set_state("run1", "SUCCESS")
    world.complete()

    assert [body["id"] for body in world.bodies("publish")] == ["b"]
    assert [body["status"]["phase"] for body in world.bodies("x-sink")] == ["canceled"]


@pytest.mark.rule("10.large")
@pytest.mark.slow
def test_many_children_are_routed_in_chunks_over_several_invocations(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_routing, "CHUNK", 7)
    start_run(world, "a", "b", "c")
    world.write_results(1, [done_result(0, *range(20)), done_result(1, "b"), done_result(2, *range(100, 120))])
    world.set_state("run1", "SUCCESS")
    invocations = 0
    while world.complete(TimedContext(answers=1)):
        invocations += 1

    payloads = [body["payload"] for body in world.bodies("publish")]
    assert invocations > 3
    assert sorted(map(str, payloads)) == sorted(map(str, [*range(20), "b", *range(100, 120)]))
    assert world.reported_ids("completed") == ["a", "b", "c"]
    assert world.items("OPEN#") == []
