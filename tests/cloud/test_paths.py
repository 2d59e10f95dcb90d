"""Tests routes, retries, time limits and options on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from asya.protocol import ids, names
from asya.protocol.times import format_time, parse_time
from tests.cloud.deployed_cloud import until
from tests.cloud.environment import now
from tests.cloud.paths_mesh import FinalState, NewEnvelope, note_intervals, notes, send, wait_for_final_state

if TYPE_CHECKING:
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

NOT_BEFORE = "x-asya-not-before"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HANGING = ("function", "coroutine", "blocked loop", "generator", "asynchronous generator")
BACKOFFS = {"constant": [1, 1], "linear": [1, 2, 3], "exponential": [1, 2, 4]}
PLANS: dict[str, list[str]] = {
    "planned route": ["helper", "step", "helper"],
    "empty plan": [],
    "unknown actor": ["helper", "nobody"],
    "end actor": ["x-sink"],
}


def fails(how: str, **more: Any) -> NewEnvelope:
    return NewEnvelope(["stubborn"], {"fails": how, **more})


def in_seconds(seconds: float) -> str:
    return format_time(now() + timedelta(seconds=seconds))


def all_envelopes() -> dict[str, NewEnvelope]:
    """The envelopes of all tests, by name; they are sent together."""
    return {
        # The slowest envelopes are first.
        **{f"hangs as a {how}": NewEnvelope(["slow"], {"how": how}) for how in HANGING},
        "leaves": NewEnvelope(["slow"], {"how": "leave"}),
        **{how: fails(how) for how in BACKOFFS},
        "lasting": fails("lasting"),
        "not before": NewEnvelope(
            ["stubborn"], {"until": 2}, {NOT_BEFORE: in_seconds(6)}, {"phase": "retrying", "attempt": 2}
        ),
        "retry in an hour": fails("patient"),
        "no time for the retry": NewEnvelope(
            ["stubborn"], {"fails": "patient"}, status={"deadline_at": in_seconds(600)}
        ),
        "rescued": NewEnvelope(["stubborn", "loop"], {"fails": "rescued"}),
        "succeeds the second time": fails("linear", until=2),
        "unforeseen": fails("unforeseen"),
        "sequence": NewEnvelope(["step", "helper", "step"], {"kept": "ü"}, {"traceparent": TRACE, "mine": [1, None]}),
        "25 hops": NewEnvelope(["step", "helper"] * 12 + ["step"], {}),
        "loop": NewEnvelope(["loop", "step"], {"left": 5}),
        "endless loop": NewEnvelope(["loop"], {"left": 1_000_000}),
        "override": NewEnvelope(["planner"], {"plan": ["step"]}, {"x-asya-route-override": {"step": "helper"}}),
        **{name: NewEnvelope(["planner"], {"plan": plan}) for name, plan in PLANS.items()},
        "fan-out of fan-outs": NewEnvelope(["spread", "spread"], {"path": []}),
        "large": NewEnvelope(["step", "helper", "step"], {"swell": 1_500_000}),
        "late": NewEnvelope(["step"], {}, status={"deadline_at": in_seconds(-60)}),
        "halves": NewEnvelope(["halves"], {}),
        "whole": NewEnvelope(["whole", "step"], 1),
        "silent": NewEnvelope(["planner"], {"plan": ["helper"]}, {"x-asya-mesh-status": "off"}),
        "once": NewEnvelope(["once"], {"n": 1}),
        "hook": NewEnvelope(["step"], {"witness": True}),
        "hook of a failure": NewEnvelope(["stubborn"], {"fails": "unforeseen", "witness": True}),
    }


@dataclass(frozen=True)
class SentEnvelopes:
    """The sent envelopes by name. One that is missing is sent when a test asks for it."""

    cloud: DeployedCloud
    by_name: dict[str, NewEnvelope] = field(default_factory=dict)

    def id(self, name: str) -> str:
        if name not in self.by_name:
            self.by_name[name] = all_envelopes()[name]
            send(self.cloud, self.by_name[name])
        return self.by_name[name].envelope_id

    def final_state(self, name: str) -> FinalState:
        """Waits for the final state of an envelope."""
        return wait_for_final_state(self.cloud, self.id(name))

    def child(self, name: str, index: int) -> FinalState:
        """Waits for the final state of a later frame of its first hop."""
        return wait_for_final_state(self.cloud, ids.child_id(self.id(name), 0, 0, index))


@pytest.fixture(scope="module")
def envelopes(paths: DeployedCloud, request: pytest.FixtureRequest) -> SentEnvelopes:
    """Sends all envelopes together, so that their delays overlap, unless the kit alone runs most of the tests."""
    sent = SentEnvelopes(paths)
    tests = {item.name for item in request.session.items if item.path == request.path}
    for name in all_envelopes() if test_a_retry_in_an_hour_waits_on_the_queue.__name__ in tests else ():
        sent.id(name)
    return sent


# --- routes


def test_a_sequence_carries_its_payload_headers_and_trace(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("sequence")
    assert (state.task.status, state.task.progress_percent) == ("succeeded", 100)
    assert state.payload == {"kept": "ü", "steps": 3}
    assert state.envelope["route"] == {"prev": ["step", "helper", "step"], "curr": "", "next": []}
    assert state.envelope["headers"]["mine"] == [1, None]
    assert state.envelope["headers"]["traceparent"].split("-")[1] == TRACE.split("-")[1]
    assert "x-asya-first-attempt" not in state.envelope["headers"]


def test_a_route_of_25_hops_runs_25_handlers(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("25 hops")
    assert state.payload == {"steps": 25}
    assert state.envelope["route"]["prev"] == ["step", "helper"] * 12 + ["step"]


@pytest.mark.rule("7.SET")
def test_a_handler_sets_the_rest_of_the_route(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("planned route")
    assert state.envelope["route"]["prev"] == ["planner", "helper", "step", "helper"]
    assert state.payload == {"planned": True, "steps": 3}
    assert state.envelope["headers"]["planned"] == 3
    assert envelopes.final_state("empty plan").envelope["route"] == {
        "prev": ["planner"],
        "curr": "",
        "next": [],
    }


@pytest.mark.parametrize(("name", "target"), [("unknown actor", "nobody"), ("end actor", "x-sink")])
def test_an_invalid_route_ends_in_x_sump(envelopes: SentEnvelopes, name: str, target: str) -> None:
    state = envelopes.final_state(name)
    assert state.status_and_reason == ("failed", "RouteMismatch")
    assert target in state.error[1]


def test_a_loop_ends_when_its_handler_stops_extending_the_route(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("loop")
    assert state.envelope["route"]["prev"] == ["loop"] * 5 + ["step"]
    assert state.payload == {"left": 0, "steps": 1}


@pytest.mark.rule("1.max_hops")
def test_an_endless_loop_ends_at_the_hop_limit(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("endless loop")
    assert state.status_and_reason == ("failed", "MaxHops")
    assert state.envelope["route"]["prev"] == ["loop"] * 40
    assert state.payload == {"left": 1_000_000 - 40}


@pytest.mark.rule("3.route-override")
def test_a_route_override_replaces_the_actor_and_keeps_its_name_in_the_route(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("override")
    assert state.payload == {"planned": True, "steps": 1}
    assert state.envelope["route"]["prev"] == ["planner", "step"]
    assert state.envelope["headers"]["x-asya-route-resolved"] == {"step": {"target": "helper", "by": "planner"}}


@pytest.mark.rule("4.child-ids")
def test_each_leaf_of_a_fan_out_of_fan_outs_ends_by_itself(envelopes: SentEnvelopes) -> None:
    root = envelopes.id("fan-out of fan-outs")
    branches = [root, *(ids.child_id(root, 0, 0, index) for index in (1, 2))]
    for first, branch in enumerate(branches):
        leaves = [branch, *(ids.child_id(branch, 0, 1, index) for index in (1, 2))]
        for second, leaf_id in enumerate(leaves):
            leaf = wait_for_final_state(envelopes.cloud, leaf_id)
            assert (leaf.task.status, leaf.payload) == ("succeeded", {"path": [first, second]})
            assert leaf.task.parent_id == (branch if second else root if first else None)
            assert leaf.envelope.get("headers", {}).get("x-asya-root") == (root if first or second else None)


@pytest.mark.rule("4.claim-check")
def test_a_payload_larger_than_a_message_travels_by_claim_check(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("large")
    digest = hashlib.sha256(b"x" * 1_500_000).hexdigest()
    assert state.payload["measured"] == {"length": 1_500_000, "sha256": digest}
    assert len(state.payload["text"]) == 1_500_000
    assert "x-asya-payload-ref" not in state.envelope["headers"]


# --- failures and retries


@pytest.mark.rule("8.backoff")
@pytest.mark.parametrize(("how", "delays"), BACKOFFS.items())
def test_a_retry_waits_as_its_policy_says(envelopes: SentEnvelopes, how: str, delays: list[int]) -> None:
    state = envelopes.final_state(how)
    assert state.status_and_reason == ("failed", "PolicyExhausted")
    assert state.task.attempt == len(delays) + 1
    assert f"attempt {len(delays) + 1}" in state.error[1]
    intervals = note_intervals(envelopes.cloud, state.task.id)
    assert len(intervals) == len(delays)
    assert all(interval >= delay - 0.1 for interval, delay in zip(intervals, delays, strict=True)), intervals
    assert state.payload == {"fails": how}
    assert state.envelope["route"] == {"prev": [], "curr": "stubborn", "next": []}


def test_a_retried_envelope_that_succeeds_has_no_error(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("succeeds the second time")
    assert (state.task.status, state.payload, state.task.error) == ("succeeded", {"attempt": 2}, None)


def test_the_default_policy_applies_to_errors_without_a_rule(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("unforeseen")
    assert (state.status_and_reason, state.error) == (("failed", "PolicyExhausted"), ("RuntimeError", "attempt 2"))


@pytest.mark.rule("8.max_duration")
def test_retries_end_at_the_maximum_duration(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("lasting")
    assert state.status_and_reason == ("failed", "PolicyExhausted")
    start = parse_time(state.envelope["headers"]["x-asya-first-attempt"])
    duration = parse_time(state.envelope["status"]["updated_at"]) - start
    assert duration >= timedelta(seconds=3)
    assert len(notes(envelopes.cloud, state.task.id)) <= 4


@pytest.mark.rule("8.then_route")
def test_an_exhausted_envelope_takes_the_fallback_route_with_its_error(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("rescued")
    assert state.task.status == "succeeded"
    helped = {"type": "ConnectionResetError", "message": "attempt 2"}
    assert state.payload == {"fails": "rescued", "helped": helped, "steps": 2}
    assert state.envelope["route"]["prev"] == ["stubborn", "helper", "step"]
    assert "error" not in state.envelope["status"]


@pytest.mark.rule("5.2")
def test_a_retry_is_not_run_before_its_time(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("not before")
    assert (state.task.status, state.payload) == ("succeeded", {"attempt": 2})
    (call,) = notes(envelopes.cloud, state.task.id)
    assert call.at >= parse_time(envelopes.by_name["not before"].headers[NOT_BEFORE]).timestamp()
    assert NOT_BEFORE not in state.envelope["headers"]


@pytest.mark.rule("8.retry-after-deadline")
def test_a_retry_after_the_deadline_is_not_sent(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("no time for the retry")
    assert (state.status_and_reason, state.error) == (("failed", "Timeout"), ("TypeError", "attempt 1"))


# --- time limits


def test_an_envelope_after_its_deadline_is_not_started(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("late")
    assert state.status_and_reason == ("failed", "Timeout")
    assert "passed before step started" in state.error[1]
    assert state.payload == {}


@pytest.mark.rule("5.11.own-limit")
@pytest.mark.parametrize("how", HANGING)
def test_the_time_limit_ends_every_kind_of_hanging_handler(envelopes: SentEnvelopes, how: str) -> None:
    state = envelopes.final_state(f"hangs as a {how}")
    assert state.status_and_reason == ("failed", "Timeout")
    assert state.error == ("Timeout", "Runtime did not respond within 1s")
    assert state.payload == {"how": how}


@pytest.mark.rule("5.11.crash")
def test_system_exit_is_a_crash(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("leaves")
    assert state.status_and_reason == ("failed", "RuntimeCrash")
    assert state.error == ("SystemExit", "I am done")


def test_an_interrupted_process_serves_the_next_message(envelopes: SentEnvelopes) -> None:
    for how in HANGING:
        envelopes.final_state(f"hangs as a {how}")

    def poll() -> Any:
        result = wait_for_final_state(
            envelopes.cloud, send(envelopes.cloud, NewEnvelope(["slow"], {"how": "fine"}))
        ).payload
        return result if result.get("hung") else None  # a new process has no hangs, or exceeds the time limit

    assert until(poll, "a result of a process that has hung")["process"] > 0


# --- options


@pytest.mark.rule("6.buffered.re-run")
def test_buffered_frames_come_from_one_call(envelopes: SentEnvelopes) -> None:
    frames = [envelopes.final_state("halves"), *(envelopes.child("halves", index) for index in (1, 2))]
    assert [frame.payload["number"] for frame in frames] == [0, 1, 2]
    assert len({frame.payload["token"] for frame in frames}) == 1
    assert [frame.task.attempt for frame in frames] == [2, 2, 2]


@pytest.mark.rule("1.references.list.access")
def test_1_a_handler_lists_what_its_access_covers(envelopes: SentEnvelopes) -> None:
    cloud, mesh = envelopes.cloud, envelopes.cloud.mesh
    for reference in ("notes/listed/b.txt", "notes/listed/a.txt", "notes-2/c.txt"):
        mesh.upload(reference, b"x")
    covered = {"notes/listed/": ["notes/listed/a.txt", "notes/listed/b.txt"], "notes/../notes-2/": []}
    refused = {"": "*", "notes-2/": "notes-2/*", "flags/": "flags/*"}
    sent = send(cloud, NewEnvelope(["files"], {"prefixes": [*covered, *refused]}))
    lists = wait_for_final_state(cloud, sent).payload
    assert {prefix: lists[prefix] for prefix in covered} == covered
    for prefix, pattern in refused.items():
        assert f'add access: [{{bucket: data, read: "{pattern}"}}] to the actor' in lists[prefix]


@pytest.mark.rule("1.references.rows", "1.references.rows.after")
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_1_a_handler_reads_the_rows_of_a_file(envelopes: SentEnvelopes, suffix: str) -> None:
    values = [{"number": number} for number in range(3)]
    body = "\n".join(json.dumps(value) for value in values).encode()
    reference = f"notes/rows/a{suffix}"
    envelopes.cloud.mesh.upload(reference, gzip.compress(body) if suffix.endswith(".gz") else body)
    sent = send(envelopes.cloud, NewEnvelope(["files"], {"file": reference}))
    assert wait_for_final_state(envelopes.cloud, sent).payload == {"rows": values, "after": values[1:]}


def test_a_handler_in_envelope_mode_advances_the_route(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("whole")
    assert state.payload == {"was": 1, "steps": 1}
    assert state.envelope["route"]["prev"] == ["whole", "step"]
    assert state.envelope["headers"]["seen-by"] == "whole"


@pytest.mark.rule("4.deduplicate")
def test_a_completed_hop_does_not_run_again(envelopes: SentEnvelopes) -> None:
    state = envelopes.final_state("once")
    send(envelopes.cloud, NewEnvelope(["once"], {"n": 2}, envelope_id=state.task.id))
    queue = names.queue_name("paths", "once")
    until(lambda: envelopes.cloud.message_count(queue) == 0 or None, "the second message to be processed")
    assert len(notes(envelopes.cloud, state.task.id)) == 1
    assert envelopes.final_state("once").payload == {"n": 1}


@pytest.mark.rule("11.hooks")
@pytest.mark.parametrize(("name", "note"), [("hook", "success"), ("hook of a failure", "RuntimeError")])
def test_a_hook_runs_once_for_each_end_and_reports_nothing(envelopes: SentEnvelopes, name: str, note: str) -> None:
    copy = ids.hook_id(envelopes.id(name), 0, "witness")
    assert [each.name for each in until(lambda: notes(envelopes.cloud, copy) or None, "the hook to run")] == [note]
    assert envelopes.cloud.mesh.task(copy) is None


@pytest.mark.rule("3.mesh-status")
def test_a_stealth_envelope_reports_nothing(envelopes: SentEnvelopes) -> None:
    silent = envelopes.id("silent")
    results = envelopes.cloud.mesh.connection.results

    def poll() -> dict[str, Any] | None:
        page = envelopes.cloud.client("s3").list_objects_v2(
            Bucket=results.bucket, Prefix=f"{results.prefix}happy-asya/"
        )
        keys = [each["Key"] for each in page.get("Contents", []) if each["Key"].endswith(f"/{silent}.json")]
        return json.loads(envelopes.cloud.mesh.fetch(f"s3://{results.bucket}/{keys[0]}") or b"") if keys else None

    assert until(poll, "the result to be written")["payload"] == {"planned": True, "steps": 1}
    assert envelopes.cloud.mesh.task(silent) is None


# --- delayed messages


@pytest.mark.rule("8.retry")
def test_a_retry_in_an_hour_waits_on_the_queue(envelopes: SentEnvelopes) -> None:
    for name in (*BACKOFFS, "lasting", "not before", "rescued"):
        envelopes.final_state(name)
    sqs = envelopes.cloud.client("sqs")
    url = sqs.get_queue_url(QueueName=names.queue_name("paths", "stubborn"))["QueueUrl"]
    attribute = "ApproximateNumberOfMessagesDelayed"
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[attribute])["Attributes"] == {attribute: "1"}
    assert len(notes(envelopes.cloud, envelopes.id("retry in an hour"))) == 1
