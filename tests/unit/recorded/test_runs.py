"""Pending envelopes, job runs and their files that an earlier version wrote are gone on with by this one (`protocol §10`)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import (
    Commit,
    Half,
    Journal,
    Manifest,
    Member,
    ResultFrame,
    ResultHead,
    RunFolder,
    Usage,
)
from asya.protocol.run_progress import HeartbeatRecord, JobPartial, StageNote
from asya.spark.aws.completion_messages import CanceledTask, decode_message
from asya.spark.aws.dispatch_requests import DispatchRequest, DispatchRequests, decode_request
from asya.spark.aws.heartbeats import Heartbeats
from asya.spark.aws.manifests import Manifests
from asya.spark.aws.pending import Pending
from asya.spark.aws.run_events import JobRunEvent
from asya.spark.aws.run_items import Resolution, RoutingCursor, RunRecord
from asya.spark.aws.run_records import RunRecords
from asya.spark.aws.run_results import RunOutput, RunResults
from asya.spark.aws.start_rate import StartRate
from asya.spark.aws.watch_requests import WatchRequest
from asya.spark.run_failures import WAITING, FailureDecision
from asya_spark.manifest import load_envelope, read_manifest
from tests.unit.recorded.recording import BUCKET, Recording, load

TABLE = "asya-shop-pending"
START = datetime(2026, 11, 20, 9, tzinfo=UTC)
KEEP = timedelta(days=14)
ACTOR = "clean-flights"
LARGE_TEXT = "x" * 5000
"""A payload with this in it waits in the bucket."""


def moment(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def stamped(member_id: str, payload: object, position: int = 1, **headers: object) -> bytes:
    """The envelope of a member."""
    content = {
        "id": member_id,
        "parent_id": "task-root",
        "route": {"prev": ["inspect-dataset"] * position, "curr": ACTOR, "next": ["publish-report"]},
        "headers": {"tenant": "acme", **headers},
        "status": {"phase": "processing", "actor": ACTOR, "attempt": 1, "max_attempts": 3, "created_at": moment(-60)},
        "payload": payload,
    }
    return msgspec.json.encode(content)


SMALL = Member(
    id="env-small",
    position=1,
    attempt=1,
    admitted_at=moment(1),
    generation=2,
    root_id="task-root",
    deadline_at=moment(3600),
    callback="https://gateway.example",
)
LARGE = Member(id="env-large #7", position=1, attempt=2, admitted_at=moment(2))
BACK = Member(
    id="env-back",
    position=1,
    attempt=1,
    admitted_at=moment(0),
    was_charged=True,
    returned_by=11,
    half=Half(run=11, side=1, size=3, origin=9),
    envelope=Raw(stamped("env-back", {"n": 3})),
)
BODIES = {SMALL.id: stamped(SMALL.id, {"n": 1}), LARGE.id: stamped(LARGE.id, {"text": LARGE_TEXT})}

MANIFEST = Manifest(
    run_id="asya.shop.clean-flights.0000000012",
    namespace="shop",
    actor=ACTOR,
    number=12,
    formed_at=moment(10),
    job="flights.clean_flights",
    shape="payload",
    timeout=900.0,
    time_limit=61,
    client_token="0f" * 32,
    members=(
        replace(SMALL, envelope=Raw(BODIES[SMALL.id])),
        replace(LARGE, envelope_key="pending/clean-flights/large.json"),
        BACK,
    ),
    streamed=False,
    payload_schema="n INT",
)
FRAME = MANIFEST.members[:1]
OTHERS = {
    number: replace(MANIFEST, run_id=f"asya.shop.clean-flights.{number:010d}", number=number, members=FRAME)
    for number in (9, 13, 14, 15)
}
USAGE = Usage(vcpu_hours=0.25, memory_gb_hours=1.0, storage_gb_hours=0.5, billed=True)
PYTHON_ERROR = ErrorInfo(type="MemoryError", message="no room", mro=("Exception",), traceback="Traceback …")
SETTLED = Resolution("journal", "20261120T090100-aaaaaaaa", 1, FailureDecision("again", 2), started=True)
RECORDS = {
    12: RunRecord(
        ACTOR,
        12,
        "started",
        moment(10),
        job_run_id="00f1abc",
        resolution=SETTLED,
        cursor=RoutingCursor(1, 2, 3, 1),
        members=3,
        running_at=moment(70),
        job_state="FAILED",
        details="Job failed: exit code 137",
        usage=USAGE,
        application_id="00app",
    ),
    9: RunRecord(ACTOR, 9, "closed", moment(10), job_run_id="00f1aaa", members=1, job_state="SUCCESS"),
    13: RunRecord(ACTOR, 13, "formed", moment(10), members=1),
    14: RunRecord(
        ACTOR,
        14,
        "started",
        moment(10),
        job_run_id="00f1bbb",
        members=1,
        resolution=Resolution("none", decision=WAITING),
    ),
}

DIED, COMMITTED = "20261120T090100-aaaaaaaa", "20261120T090200-bbbbbbbb"
SAID = [
    JobPartial(index=0, sequence=0, at=moment(80), data=Raw(b'{"rows":1}')),
    JobPartial(index=None, sequence=0, at=moment(80), data=Raw(b'{"all":true}')),
]


@pytest.fixture
def state() -> Recording:
    return load("runs")


@pytest.fixture
def pending(state: Recording) -> Pending:
    return Pending(state.dynamodb, state.s3, table=TABLE, bucket=BUCKET, pause=pytest.fail)  # type: ignore[arg-type]


@pytest.fixture
def records(state: Recording) -> RunRecords:
    return RunRecords(state.dynamodb, table=TABLE, retention=KEEP)  # type: ignore[arg-type]


@pytest.fixture
def results(state: Recording) -> RunResults:
    return RunResults(state.s3, bucket=BUCKET)  # type: ignore[arg-type]


def test_what_waits_is_read_oldest_first(pending: Pending) -> None:
    back, small, large = pending.members(ACTOR)
    assert back == BACK
    assert back.group_key == (True, 0, 11, 1)
    assert small == replace(SMALL, envelope=Raw(BODIES[SMALL.id]))
    assert large.envelope_key is not None
    assert large == replace(LARGE, envelope_key=large.envelope_key)
    assert pending.count(ACTOR) == 3
    assert pending.has_any(ACTOR)
    assert not pending.has_any("another")


def test_envelopes_are_read_from_the_table_and_from_the_bucket(pending: Pending) -> None:
    assert [pending.body(member) for member in pending.members(ACTOR)] == [
        stamped("env-back", {"n": 3}),
        BODIES[SMALL.id],
        BODIES[LARGE.id],
    ]


def test_nothing_becomes_pending_twice(pending: Pending) -> None:
    now = START + timedelta(seconds=60)
    again = [pending.store(ACTOR, member, BODIES[member.id]) for member in (SMALL, LARGE)]
    assert pending.enqueue(ACTOR, again, now=now) == [False, False]
    assert pending.enqueue(ACTOR, [pending.store(ACTOR, replace(SMALL, attempt=2), b"{}")], now=now) == [True]
    pending.requeue(ACTOR, [BACK], now=now)
    assert pending.count(ACTOR) == 4


def test_what_went_into_a_run_is_removed(pending: Pending) -> None:
    members = list(pending.members(ACTOR))
    pending.remove(ACTOR, members[:2])
    assert list(pending.members(ACTOR)) == members[2:]


@pytest.mark.parametrize("number", RECORDS)
def test_a_record_is_read_with_every_field(records: RunRecords, number: int) -> None:
    assert records.get(ACTOR, number) == RECORDS[number]


def test_numbers_go_on(records: RunRecords) -> None:
    assert (records.latest(ACTOR), records.latest("another")) == (15, 0)
    assert list(records.open_numbers(ACTOR)) == [12, 13, 14, 15]
    assert records.open(OTHERS[13], now=START) == RECORDS[13]


def test_deaths_are_counted_on(records: RunRecords) -> None:
    assert (records.failures(ACTOR, 9), records.failures(ACTOR, 12)) == (2, 0)
    records.resolve(ACTOR, 13, Resolution("none"), now=START, failed_origin=9)
    assert records.failures(ACTOR, 9) == 3


def test_what_was_settled_stands(records: RunRecords) -> None:
    assert records.resolve(ACTOR, 12, Resolution("commit", COMMITTED), now=START) == SETTLED


def test_the_cursor_only_goes_on(records: RunRecords) -> None:
    records.advance(ACTOR, 12, RoutingCursor(), RoutingCursor(1, 2, 0, 0))
    assert records.get(ACTOR, 12) == RECORDS[12]
    records.advance(ACTOR, 12, RoutingCursor(1, 2, 3, 1), RoutingCursor(2))
    found = records.get(ACTOR, 12)
    assert found is not None
    assert found.cursor == RoutingCursor(2)


def test_states_only_go_on(records: RunRecords) -> None:
    records.record_state(ACTOR, 12, "RUNNING")
    assert records.get(ACTOR, 12) == RECORDS[12]


def test_leases_and_turns_are_kept(records: RunRecords) -> None:
    until, soon, later = (START + timedelta(seconds=seconds) for seconds in (900, 60, 301))
    assert not records.acquire_lease(ACTOR, 12, "somebody", until=until, now=soon)
    assert records.acquire_lease(ACTOR, 12, "somebody", until=until, now=later)
    assert not records.claim_turn(ACTOR, 12, 7, "somebody")
    assert records.claim_turn(ACTOR, 12, 7, "watcher")
    assert records.claim_turn(ACTOR, 12, 8, "somebody")


def test_a_run_is_closed(records: RunRecords) -> None:
    records.close(ACTOR, 12)
    assert list(records.open_numbers(ACTOR)) == [13, 14, 15]


def requests_of(state: Recording) -> DispatchRequests:
    return DispatchRequests(state.dynamodb, None, table=TABLE, queue_url="")  # type: ignore[arg-type]


def test_a_request_on_its_way_is_known(state: Recording) -> None:
    found = requests_of(state)
    assert found.is_requested(ACTOR, now=START + timedelta(seconds=60))
    assert not found.ensure(ACTOR, 2.0, now=START + timedelta(seconds=60))
    assert not found.is_requested(ACTOR, now=START + timedelta(seconds=91))


def test_its_turn_takes_the_flag_down(state: Recording) -> None:
    found, now = requests_of(state), START + timedelta(seconds=30)
    assert not found.accept(DispatchRequest(ACTOR, 1), now=now)
    assert found.accept(DispatchRequest(ACTOR, 2), now=now)
    assert not found.is_requested(ACTOR, now=now)


def test_messages_to_the_dispatcher(state: Recording) -> None:
    assert [decode_request(body) for body in state.messages["x-dispatch"]] == [
        DispatchRequest(ACTOR, 0),
        DispatchRequest(ACTOR, 2),
        DispatchRequest(ACTOR),
    ]


def test_messages_to_the_completion(state: Recording) -> None:
    assert [decode_message(body) for body in state.messages["x-completion"]] == [
        JobRunEvent("00app", "00f1abc", MANIFEST.run_id, "FAILED", "Job failed: exit code 137"),
        WatchRequest(MANIFEST.run_id, "00f1abc"),
        WatchRequest(
            MANIFEST.run_id, "00f1abc", turn=7, attempt=DIED, beat=3, partials_file="fly-000001.jsonl", next_member=200
        ),
        CanceledTask("order/7 ü#%"),
    ]


def test_the_quota_is_counted_on(state: Recording) -> None:
    quota = StartRate(state.dynamodb, table=TABLE, per_second=0.1, burst=2)  # type: ignore[arg-type]
    assert quota.take(now=START + timedelta(seconds=1)) == pytest.approx(9.0)
    assert quota.take(now=START + timedelta(seconds=11)) == 0.0


def test_a_manifest_is_read_by_the_mesh(state: Recording) -> None:
    manifests = Manifests(state.s3, bucket=BUCKET)  # type: ignore[arg-type]
    assert manifests.read(ACTOR, 12) == MANIFEST
    assert not manifests.create(MANIFEST)
    assert manifests.exists(ACTOR, 12)
    assert manifests.read(ACTOR, 99) is None


def test_a_manifest_is_read_by_the_job(state: Recording) -> None:
    files = RunFiles(state)
    found = read_manifest(files, f"s3://{BUCKET}/runs/clean-flights/0000000012/manifest.json")
    assert (found.run_id, found.actor, found.number, found.job) == (MANIFEST.run_id, ACTOR, 12, MANIFEST.job)
    assert (found.shape, found.timeout, found.time_limit) == ("payload", 900.0, 61.0)
    assert (found.streamed, found.payload_schema) == (False, "n INT")
    assert found.folder == f"s3://{BUCKET}/runs/clean-flights/0000000012/"
    members = [(each.index, each.id, each.position, each.attempt, each.deadline_at) for each in found.members]
    assert members == [(0, SMALL.id, 1, 1, moment(3600)), (1, LARGE.id, 1, 2, None), (2, BACK.id, 1, 1, None)]
    small, large = (load_envelope(files, found, found.members[index]) for index in (0, 1))
    assert (small.id, small.parent_id, small.prev, small.curr) == (
        SMALL.id,
        "task-root",
        ("inspect-dataset",),
        ACTOR,
    )
    assert (small.next, small.headers, small.payload) == (("publish-report",), {"tenant": "acme"}, {"n": 1})
    assert (large.id, large.payload) == (LARGE.id, {"text": LARGE_TEXT})


def test_a_commit_counts(results: RunResults) -> None:
    found = results.find(RunFolder(ACTOR, 13), 3)
    assert (found.source, found.attempt, found.error, found.unreached) == ("commit", COMMITTED, None, 2)
    (part,) = found.parts
    assert (part.file, part.first, part.last, part.lines) == ("part-000000.jsonl", 0, 1, 5)
    assert found.missing(3) == [2]
    commit = results.commit(RunFolder(ACTOR, 13), COMMITTED)
    assert commit == Commit(
        run_id=OTHERS[13].run_id, attempt=COMMITTED, finished_at=moment(90), parts=(part,), unreached=2
    )
    assert results.read(RunFolder(ACTOR, 13), "commit", COMMITTED, parts=1, members=3) == found


def test_results_are_read_line_by_line(results: RunResults) -> None:
    (part,) = results.find(RunFolder(ACTOR, 13), 3).parts
    lines = list(results.lines(RunFolder(ACTOR, 13), COMMITTED, part))
    assert msgspec.json.decode(lines[0], type=ResultHead) == ResultHead(
        index=0, end="done", frames=2, duration_ms=1500.0
    )
    assert [msgspec.json.decode(line, type=ResultFrame) for line in lines[1:3]] == [
        ResultFrame(payload=Raw(b'{"n": 1}')),
        ResultFrame(
            payload=Raw(b"null"),
            next=("other",),
            headers={"tenant": Raw(b'"b"'), "gone": Raw(b"null")},
            status={"note": Raw(b"1")},
        ),
    ]
    assert msgspec.json.decode(lines[3], type=ResultHead) == ResultHead(
        index=1, end="timed_out", frames=1, duration_ms=1500.0, error=PYTHON_ERROR, limit=900.0, by_deadline=True
    )
    assert msgspec.json.decode(lines[4], type=ResultFrame) == ResultFrame()


def test_a_commit_without_results_says_why(results: RunResults) -> None:
    assert results.find(RunFolder(ACTOR, 14), 3) == RunOutput("commit", COMMITTED, error=PYTHON_ERROR)


def test_the_journal_of_an_attempt_that_died(results: RunResults) -> None:
    found = results.find(RunFolder(ACTOR, 12), 3)
    assert (found.source, found.attempt, found.at_work, found.stage) == ("journal", DIED, (1,), "working")
    assert not found.is_first
    assert [(part.first, part.last) for part in found.parts] == [(0, 0)]
    journal = results.journal(RunFolder(ACTOR, 12), DIED)
    assert journal == Journal(
        run_id=MANIFEST.run_id, attempt=DIED, sequence=3, updated_at=moment(90), parts=found.parts, at_work=1
    )
    assert results.last_error(RunFolder(ACTOR, 12)) == PYTHON_ERROR


def test_an_attempt_that_had_hardly_begun(results: RunResults) -> None:
    assert results.find(RunFolder(ACTOR, 15), 3) == RunOutput("journal", DIED, stage="starting")


def test_signs_of_life(state: Recording) -> None:
    heartbeats = Heartbeats(state.s3, bucket=BUCKET)  # type: ignore[arg-type]
    stage = StageNote(stage=4, name="collect at cleaning.py:20", tasks=8, done=7, rows_read=100, rows_written=3)
    assert heartbeats.latest(RunFolder(ACTOR, 12), DIED) == HeartbeatRecord(
        at=moment(90), beat=3, at_work=1, done=1, stages=(stage,)
    )
    assert list(heartbeats.partials(RunFolder(ACTOR, 12), DIED, "")) == [
        ("fly-000000.jsonl", SAID[:1]),
        ("fly-000001.jsonl", SAID[1:]),
    ]
    assert list(heartbeats.partials(RunFolder(ACTOR, 12), DIED, "fly-000000.jsonl")) == [("fly-000001.jsonl", SAID[1:])]


class RunFiles:
    """The files of a run, as a job reads them."""

    def __init__(self, state: Recording) -> None:
        self._state = state

    def read(self, uri: str) -> bytes:
        return self._state.objects[uri.removeprefix(f"s3://{BUCKET}/")]

    def chunks(self, uri: str) -> Iterator[bytes]:
        yield self.read(uri)


def test_a_payload_keeps_its_bytes_in_a_manifest(state: Recording) -> None:
    content = json.loads(state.objects["runs/clean-flights/0000000012/manifest.json"])
    assert content["members"][0]["envelope"] == json.loads(BODIES[SMALL.id])
    manifest = Manifests(state.s3, bucket=BUCKET).read(ACTOR, 12)  # type: ignore[arg-type]
    assert manifest is not None
    envelope = manifest.members[2].envelope
    assert isinstance(envelope, Raw)
    assert bytes(decode(bytes(envelope)).payload) == b'{"n":3}'
