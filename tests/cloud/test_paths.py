"""Every path that an envelope can take on the deployed mesh, IAM enforced: all are on their way at once, then looked for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol import ids, names
from asya.protocol.times import format_time, parse_time
from tests.cloud.deployed_cloud import until
from tests.cloud.journeys import End, Journey, end_of, notes, pauses, send

if TYPE_CHECKING:
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

NOT_BEFORE = "x-asya-not-before"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HANGING = ("function", "coroutine", "blocked loop", "generator", "asynchronous generator")
BACKOFFS = {"constant": [1, 1], "linear": [1, 2, 3], "exponential": [1, 2, 4]}
PLANS: dict[str, list[str]] = {
    "the plan is carried out": ["helper", "step", "helper"],
    "the plan is to stop": [],
    "nobody is there": ["helper", "nobody"],
    "the end is not for routes": ["x-sink"],
}


def fails(how: str, **more: Any) -> Journey:
    return Journey(["stubborn"], {"fails": how, **more})


def in_seconds(seconds: float) -> str:
    return format_time(datetime.now(UTC) + timedelta(seconds=seconds))


def journeys() -> dict[str, Journey]:
    """Everything that is sent before the first test looks."""
    return {
        # Those that take longest begin.
        **{f"hangs as a {how}": Journey(["slow"], {"how": how}) for how in HANGING},
        "leaves": Journey(["slow"], {"how": "leave"}),
        **{how: fails(how) for how in BACKOFFS},
        "lasting": fails("lasting"),
        "not before": Journey(
            ["stubborn"], {"until": 2}, {NOT_BEFORE: in_seconds(6)}, {"phase": "retrying", "attempt": 2}
        ),
        "retry in an hour": fails("patient"),
        "no time for the retry": Journey(["stubborn"], {"fails": "patient"}, status={"deadline_at": in_seconds(600)}),
        "rescued": Journey(["stubborn", "loop"], {"fails": "rescued"}),
        "better the second time": fails("linear", until=2),
        "unforeseen": fails("unforeseen"),
        "sequence": Journey(["step", "helper", "step"], {"kept": "ü"}, {"traceparent": TRACE, "mine": [1, None]}),
        "25 hops": Journey(["step", "helper"] * 12 + ["step"], {}),
        "loop": Journey(["loop", "step"], {"left": 5}),
        "endless loop": Journey(["loop"], {"left": 1_000_000}),
        "override": Journey(["planner"], {"plan": ["step"]}, {"x-asya-route-override": {"step": "helper"}}),
        **{name: Journey(["planner"], {"plan": plan}) for name, plan in PLANS.items()},
        "fan-out of fan-outs": Journey(["spread", "spread"], {"path": []}),
        "large": Journey(["step", "helper", "step"], {"swell": 1_500_000}),
        "late": Journey(["step"], {}, status={"deadline_at": in_seconds(-60)}),
        "halves": Journey(["halves"], {}),
        "whole": Journey(["whole", "step"], 1),
        "silent": Journey(["planner"], {"plan": ["helper"]}, {"x-asya-mesh-status": "off"}),
        "once": Journey(["once"], {"n": 1}),
        "seen": Journey(["step"], {"witness": True}),
        "seen failing": Journey(["stubborn"], {"fails": "unforeseen", "witness": True}),
    }


@dataclass(frozen=True)
class Underway:
    """All journeys, sent."""

    cloud: DeployedCloud
    journeys: dict[str, Journey]

    def id(self, name: str) -> str:
        return self.journeys[name].envelope_id

    def end(self, name: str) -> End:
        """What became of a journey."""
        return end_of(self.cloud, self.id(name))

    def child(self, name: str, index: int) -> End:
        """What became of a later frame of its first hop."""
        return end_of(self.cloud, ids.child_id(self.id(name), 0, 0, index))


@pytest.fixture(scope="module")
def underway(paths: DeployedCloud) -> Underway:
    """All are sent together: what they wait for goes by once."""
    some = journeys()
    for journey in some.values():
        send(paths, journey)
    return Underway(paths, some)


# --- where envelopes go --------------------------------------------------------------------------------------------------


def test_a_sequence_takes_its_payload_its_headers_and_its_trace_along(underway: Underway) -> None:
    done = underway.end("sequence")
    assert (done.task.status, done.task.progress_percent) == ("succeeded", 100)
    assert done.payload == {"kept": "ü", "steps": 3}
    assert done.envelope["route"] == {"prev": ["step", "helper", "step"], "curr": "", "next": []}
    assert done.envelope["headers"]["mine"] == [1, None]
    assert done.envelope["headers"]["traceparent"].split("-")[1] == TRACE.split("-")[1]
    assert "x-asya-first-attempt" not in done.envelope["headers"]


def test_25_hops_are_25_steps(underway: Underway) -> None:
    done = underway.end("25 hops")
    assert done.payload == {"steps": 25}
    assert done.envelope["route"]["prev"] == ["step", "helper"] * 12 + ["step"]


@pytest.mark.rule("7.SET")
def test_a_handler_says_where_it_goes_on(underway: Underway) -> None:
    done = underway.end("the plan is carried out")
    assert done.envelope["route"]["prev"] == ["planner", "helper", "step", "helper"]
    assert done.payload == {"planned": True, "steps": 3}
    assert done.envelope["headers"]["planned"] == 3
    assert underway.end("the plan is to stop").envelope["route"] == {"prev": ["planner"], "curr": "", "next": []}


@pytest.mark.parametrize(("name", "target"), [("nobody is there", "nobody"), ("the end is not for routes", "x-sink")])
def test_a_plan_that_leads_nowhere_ends_in_x_sump(underway: Underway, name: str, target: str) -> None:
    done = underway.end(name)
    assert done.why == ("failed", "RouteMismatch")
    assert target in done.error[1]


def test_around_until_nothing_is_left(underway: Underway) -> None:
    done = underway.end("loop")
    assert done.envelope["route"]["prev"] == ["loop"] * 5 + ["step"]
    assert done.payload == {"left": 0, "steps": 1}


@pytest.mark.rule("1.max_hops")
def test_an_endless_loop_ends_at_the_hop_limit(underway: Underway) -> None:
    done = underway.end("endless loop")
    assert done.why == ("failed", "MaxHops")
    assert done.envelope["route"]["prev"] == ["loop"] * 40
    assert done.payload == {"left": 1_000_000 - 40}


@pytest.mark.rule("3.route-override")
def test_another_actor_takes_the_place_of_one_and_the_route_keeps_its_name(underway: Underway) -> None:
    done = underway.end("override")
    assert done.payload == {"planned": True, "steps": 1}
    assert done.envelope["route"]["prev"] == ["planner", "step"]
    assert done.envelope["headers"]["x-asya-route-resolved"] == {"step": {"target": "helper", "by": "planner"}}


@pytest.mark.rule("4.child-ids")
def test_each_leaf_of_a_fan_out_of_fan_outs_ends_by_itself(underway: Underway) -> None:
    root = underway.id("fan-out of fan-outs")
    branches = [root, *(ids.child_id(root, 0, 0, index) for index in (1, 2))]
    for first, branch in enumerate(branches):
        leaves = [branch, *(ids.child_id(branch, 0, 1, index) for index in (1, 2))]
        for second, leaf_id in enumerate(leaves):
            leaf = end_of(underway.cloud, leaf_id)
            assert (leaf.task.status, leaf.payload) == ("succeeded", {"path": [first, second]})
            assert leaf.task.parent_id == (branch if second else root if first else None)
            assert leaf.envelope.get("headers", {}).get("x-asya-root") == (root if first or second else None)


@pytest.mark.rule("4.claim-check")
def test_a_payload_too_large_for_a_message_goes_on_by_claim_check(underway: Underway) -> None:
    done = underway.end("large")
    digest = hashlib.sha256(b"x" * 1_500_000).hexdigest()
    assert done.payload["measured"] == {"length": 1_500_000, "sha256": digest}
    assert len(done.payload["text"]) == 1_500_000
    assert "x-asya-payload-ref" not in done.envelope["headers"]


# --- failing, and trying again -------------------------------------------------------------------------------------------


@pytest.mark.rule("8.backoff")
@pytest.mark.parametrize(("how", "least"), BACKOFFS.items())
def test_a_retry_waits_as_its_policy_says(underway: Underway, how: str, least: list[int]) -> None:
    done = underway.end(how)
    assert done.why == ("failed", "PolicyExhausted")
    assert done.task.attempt == len(least) + 1
    assert f"attempt {len(least) + 1}" in done.error[1]
    waited = pauses(underway.cloud, done.task.id)
    assert len(waited) == len(least)
    assert all(pause >= delay - 0.1 for pause, delay in zip(waited, least, strict=True)), waited
    assert done.payload == {"fails": how}
    assert done.envelope["route"] == {"prev": [], "curr": "stubborn", "next": []}


def test_what_succeeds_after_all_has_no_error(underway: Underway) -> None:
    done = underway.end("better the second time")
    assert (done.task.status, done.payload, done.task.error) == ("succeeded", {"attempt": 2}, None)


def test_the_default_policy_is_for_what_no_rule_names(underway: Underway) -> None:
    done = underway.end("unforeseen")
    assert (done.why, done.error) == (("failed", "PolicyExhausted"), ("RuntimeError", "attempt 2"))


@pytest.mark.rule("8.max_duration")
def test_trying_ends_when_it_has_lasted_long_enough(underway: Underway) -> None:
    done = underway.end("lasting")
    assert done.why == ("failed", "PolicyExhausted")
    began = parse_time(done.envelope["headers"]["x-asya-first-attempt"])
    lasted = parse_time(done.envelope["status"]["updated_at"]) - began
    assert lasted >= timedelta(seconds=3)
    assert len(notes(underway.cloud, done.task.id)) <= 4


@pytest.mark.rule("8.then_route")
def test_who_is_exhausted_goes_elsewhere_with_the_error(underway: Underway) -> None:
    done = underway.end("rescued")
    assert done.task.status == "succeeded"
    helped = {"type": "ConnectionResetError", "message": "attempt 2"}
    assert done.payload == {"fails": "rescued", "helped": helped, "steps": 2}
    assert done.envelope["route"]["prev"] == ["stubborn", "helper", "step"]
    assert "error" not in done.envelope["status"]


@pytest.mark.rule("5.2")
def test_a_retry_is_not_run_before_its_time(underway: Underway) -> None:
    done = underway.end("not before")
    assert (done.task.status, done.payload) == ("succeeded", {"attempt": 2})
    (call,) = notes(underway.cloud, done.task.id)
    assert call.at >= parse_time(underway.journeys["not before"].headers[NOT_BEFORE]).timestamp()
    assert NOT_BEFORE not in done.envelope["headers"]


@pytest.mark.rule("8.retry-after-deadline")
def test_a_retry_that_would_come_too_late_is_not_sent(underway: Underway) -> None:
    done = underway.end("no time for the retry")
    assert (done.why, done.error) == (("failed", "Timeout"), ("TypeError", "attempt 1"))


# --- time ----------------------------------------------------------------------------------------------------------------


def test_past_its_deadline_it_is_not_begun(underway: Underway) -> None:
    done = underway.end("late")
    assert done.why == ("failed", "Timeout")
    assert "passed before step started" in done.error[1]
    assert done.payload == {}


@pytest.mark.rule("5.11.own-limit")
@pytest.mark.parametrize("how", HANGING)
def test_the_time_limit_ends_whatever_hangs(underway: Underway, how: str) -> None:
    done = underway.end(f"hangs as a {how}")
    assert done.why == ("failed", "Timeout")
    assert done.error == ("Timeout", "Runtime did not respond within 1s")
    assert done.payload == {"how": how}


@pytest.mark.rule("5.11.crash")
def test_leaving_by_system_exit_is_a_crash(underway: Underway) -> None:
    done = underway.end("leaves")
    assert done.why == ("failed", "RuntimeCrash")
    assert done.error == ("SystemExit", "I am done")


def test_a_process_that_was_interrupted_is_fit_to_go_on(underway: Underway) -> None:
    for how in HANGING:
        underway.end(f"hangs as a {how}")

    def asked() -> Any:
        said = end_of(underway.cloud, send(underway.cloud, Journey(["slow"], {"how": "fine"}))).payload
        return said if said.get("hung") else None  # who has just started may be too slow to answer at all

    assert until(asked, "an answer of a process that has hung")["process"] > 0


# --- options -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("6.buffered.re-run")
def test_buffered_frames_are_those_of_one_run(underway: Underway) -> None:
    frames = [underway.end("halves"), *(underway.child("halves", index) for index in (1, 2))]
    assert [frame.payload["number"] for frame in frames] == [0, 1, 2]
    assert len({frame.payload["token"] for frame in frames}) == 1
    assert [frame.task.attempt for frame in frames] == [2, 2, 2]


def test_a_whole_envelope_is_moved_on_by_its_handler(underway: Underway) -> None:
    done = underway.end("whole")
    assert done.payload == {"was": 1, "steps": 1}
    assert done.envelope["route"]["prev"] == ["whole", "step"]
    assert done.envelope["headers"]["seen-by"] == "whole"


@pytest.mark.rule("4.deduplicate")
def test_a_hop_that_was_completed_is_not_run_again(underway: Underway) -> None:
    done = underway.end("once")
    send(underway.cloud, Journey(["once"], {"n": 2}, envelope_id=done.task.id))
    queue = names.queue_name("paths", "once")
    until(lambda: underway.cloud.messages(queue) == 0 or None, "the second one to be taken")
    assert len(notes(underway.cloud, done.task.id)) == 1
    assert underway.end("once").payload == {"n": 1}


@pytest.mark.rule("11.hooks")
@pytest.mark.parametrize(("name", "what"), [("seen", "success"), ("seen failing", "RuntimeError")])
def test_a_hook_sees_what_has_ended_once_and_nobody_is_told_of_that(underway: Underway, name: str, what: str) -> None:
    copy = ids.hook_id(underway.id(name), 0, "witness")
    assert [note.what for note in until(lambda: notes(underway.cloud, copy), "the hook to run")] == [what]
    assert underway.cloud.mesh.task(copy) is None


@pytest.mark.rule("3.mesh-status")
def test_nothing_is_told_of_who_asks_for_silence(underway: Underway) -> None:
    silent = underway.id("silent")
    place = underway.cloud.mesh.connection.results

    def kept() -> dict[str, Any] | None:
        found = underway.cloud.client("s3").list_objects_v2(Bucket=place.bucket, Prefix=f"{place.prefix}happy-asya/")
        keys = [each["Key"] for each in found.get("Contents", []) if each["Key"].endswith(f"/{silent}.json")]
        return json.loads(underway.cloud.mesh.fetch(f"s3://{place.bucket}/{keys[0]}") or b"") if keys else None

    assert until(kept, "the result to be written")["payload"] == {"planned": True, "steps": 1}
    assert underway.cloud.mesh.task(silent) is None


# --- what still lies on a queue when all others are through ---------------------------------------------------------------


@pytest.mark.rule("8.retry")
def test_a_retry_in_an_hour_waits_on_the_queue(underway: Underway) -> None:
    for name in (*BACKOFFS, "lasting", "not before", "rescued"):
        underway.end(name)
    sqs = underway.cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=names.queue_name("paths", "stubborn"))["QueueUrl"]
    attribute = "ApproximateNumberOfMessagesDelayed"
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])["Attributes"] == {attribute: "1"}
    assert len(notes(underway.cloud, underway.id("retry in an hour"))) == 1
