"""What an earlier version kept of envelopes that ended, wait or are at work is read by this one (`protocol §4`, `§11`, `§12`)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from asya.crew.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.crew.result_index import ResultRow
from asya.crew.result_metadata import result_metadata
from asya.dead_letters.aws.replay_sources import ReplaySources
from asya.dead_letters.aws.report_marks import ReportMarks
from asya.dead_letters.replay import Sources
from asya.messaging.aws.claim_check import ClaimCheck
from asya.pause.aws.paused_envelopes import PausedEnvelopes, PauseKey
from asya.pause.pausing import pause_of
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope, UnknownMembers
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.mesh_table import CircuitBreaker, Sink
from asya.protocol.pause import PauseField, PauseHeader
from asya.protocol.route import Route
from asya.protocol.status import Status
from asya.sidecar.aws.circuit_breaker import Breaker
from asya.sidecar.aws.deduplication import CompletedHops
from asya.sidecar.aws.frame_buffer import FrameBuffer
from asya.sidecar.circuit_breaker import Permit, Rejection
from asya.wait.aws.held_envelopes import Tombstone
from tests.doubles.envelopes import hop, message
from tests.unit.recorded.recording import BUCKET, RESULTS_URI, Recording, load

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
AT = "2026-11-20T09:00:00.000000Z"
STARTED = "2026-11-20T08:59:00.500000Z"
ERROR = ErrorInfo(type="shop.BadOrder", message="no such airport …", mro=("ValueError", "Exception"), traceback="…")
LARGE = b'{"text": "' + b"x" * 2000 + b'"}'
LARGE_MESSAGE = message(payload=...)[:-1] + b',"payload":' + LARGE + b"}"
LIMITS = CircuitBreaker(failures=2, window=60.0, open_for=30.0)
KEPT_SECONDS = 86400.0


def ended(envelope_id: str, phase: Any, **more: Any) -> Envelope:
    """An envelope at its end."""
    status: dict[str, Any] = {
        "actor": "score",
        "attempt": 2,
        "max_attempts": 3,
        "created_at": STARTED,
        "updated_at": AT,
    }
    headers = {"tenant": Raw(b'"acme"'), "x-asya-root": Raw(b'"root"'), "x-asya-generation": Raw(b"1")}
    return Envelope(
        id=envelope_id,
        parent_id="root",
        route=Route(("split", "score"), "", ()),
        headers=headers,
        status=Status(phase=phase, **(status | more)),
        payload=Raw(b'{"text": "h\xc3\xa9llo", "n": 1.50}'),
        status_extra=UnknownMembers({"note": Raw(b'"kept"')}),
        extra=UnknownMembers({"unknown": Raw(b"[1, 2]")}),
    )


SUCCEEDED = ended("env-1", "succeeded", reason="Completed")
FAILED = ended("order/7 ü", "failed", reason="PolicyExhausted", error=ERROR)
CANCELED = ended("env-2", "canceled", reason="Canceled")
BY_TIME = ended("env-3", "succeeded", reason="Completed")
CHECKPOINT = replace(ended("env-1", "processing"), route=Route(("split",), "x-checkpoint", ("score",)))
RESULTS: Mapping[str, Envelope] = {
    "results/succeeded/env-1.json": SUCCEEDED,
    "results/failed/order%2F7%20%C3%BC.json": FAILED,
    "results/sump/order%2F7%20%C3%BC.json": FAILED,
    "results/canceled/env-2.json": CANCELED,
    "results/happy-asya/2026-11-20T09:00:00.000000Z/score/env-3.json": BY_TIME,
    "results/checkpoint/env-1/1.json": CHECKPOINT,
}

PAUSE = PauseHeader(
    epoch=1,
    paused_at=AT,
    prompt="Send the order?",
    fields=(PauseField(name="size", type="number", options=(1, 2.5), default=1),),
    remaining=120.5,
)
PAUSED = replace(
    ended("env-1", "paused", reason="Paused"),
    route=Route(("split",), "x-pause", ("score",)),
    headers={"x-asya-pause": Raw(msgspec.json.encode(PAUSE))},
)
WAITING, RESUMED = PauseKey("order/7 ü", 1, 1), PauseKey("env-2", 0, 3)
FRAMES = [
    Frame(Raw(b'{"n": 1.0}'), ("score", "post"), {"tenant": Raw(b'"b"'), "gone": None, "null": Raw(b"null")}),
    Frame(None, None, {}, {"note": Raw(b"1"), "other": None}, alone=True),
]


@pytest.fixture
def state() -> Recording:
    return load("ends")


@pytest.mark.parametrize("key", RESULTS)
def test_a_result_is_the_whole_envelope_with_its_metadata(state: Recording, key: str) -> None:
    found = decode(state.objects[key])
    expected = RESULTS[key]
    assert _plain(found) == _plain(expected)
    assert state.metadata(key) == result_metadata(expected, "shop")


def test_metadata_are_named_so(state: Recording) -> None:
    assert state.metadata("results/failed/order%2F7%20%C3%BC.json") == {
        "id": "order/7%20%C3%BC",
        "parent": "root",
        "root": "root",
        "namespace": "shop",
        "generation": "1",
        "phase": "failed",
        "last-actor": "score",
    }


def test_a_result_is_readable_json(state: Recording) -> None:
    lines = state.objects["results/succeeded/env-1.json"].decode().splitlines()
    assert lines[:3] == ["{", '  "id": "env-1",', '  "parent_id": "root",']


def test_rows_of_the_index(state: Recording) -> None:
    (key,) = (key for key in state.objects if key.startswith("results/index/recent/dt=2026-11-20/"))
    rows = [msgspec.json.decode(line, type=ResultRow) for line in state.objects[key].splitlines()]
    assert rows == [
        _row(SUCCEEDED, "Completed", f"{RESULTS_URI}succeeded/env-1.json", "x-sink"),
        _row(FAILED, "PolicyExhausted", f"{RESULTS_URI}failed/order%2F7%20%C3%BC.json", "x-sump"),
    ]


def test_a_replay_finds_what_is_kept(state: Recording) -> None:
    sources = ReplaySources(state.s3, BUCKET, RESULTS_URI, Sink())  # type: ignore[arg-type]
    assert sources.find("order/7 ü", None) == Sources(
        result=f"{RESULTS_URI}failed/order%2F7%20%C3%BC.json",
        sump=f"{RESULTS_URI}sump/order%2F7%20%C3%BC.json",
    )
    found = sources.find("env-1", None)
    assert found == Sources(
        dead_letters={1: f"s3://{BUCKET}/dlq/env-1/0/1.json"},
        hops={1: f"s3://{BUCKET}/hops/env-1/0/1.json"},
        checkpoints={1: f"{RESULTS_URI}checkpoint/env-1/1.json"},
    )
    assert sources.read(found.dead_letters[1]) == message()
    assert _plain(decode(sources.read(found.hops[1]))) == _plain(hop().envelope)


def test_an_envelope_that_waits(state: Recording) -> None:
    paused = PausedEnvelopes(state.s3, BUCKET)  # type: ignore[arg-type]
    found = paused.load(WAITING)
    assert isinstance(found, Envelope)
    assert _plain(found) == _plain(PAUSED)
    assert pause_of(found) == PAUSE
    assert paused.is_notified(WAITING)
    assert not paused.save(WAITING, SUCCEEDED)


def test_what_is_left_of_one_that_was_resumed(state: Recording) -> None:
    paused = PausedEnvelopes(state.s3, BUCKET)  # type: ignore[arg-type]
    assert paused.load(RESUMED) == Tombstone(resumed_at=AT)
    assert not paused.is_notified(RESUMED)
    assert not paused.save(RESUMED, PAUSED)


def test_frames_that_were_kept_are_everybodys(state: Recording) -> None:
    """The hop runs again in this version, which stores frames below the name of the actor."""
    kept = FrameBuffer(state.s3, BUCKET, "infer")  # type: ignore[arg-type]
    assert kept.load(hop().envelope, is_repeated=True) == FRAMES


def test_a_payload_that_waits_in_the_bucket(state: Recording) -> None:
    (body,) = state.messages["infer"]
    assert b"xxxx" not in body
    redeemed = ClaimCheck(state.s3, BUCKET).redeem(decode(body))  # type: ignore[arg-type]
    assert bytes(redeemed.payload) == LARGE
    assert _plain(redeemed) == _plain(decode(LARGE_MESSAGE))


def test_a_hop_that_is_done_is_not_done_again(state: Recording) -> None:
    completed = CompletedHops(state.dynamodb, "asya-shop-hops", KEPT_SECONDS)  # type: ignore[arg-type]
    assert completed.is_completed(hop())
    assert not completed.is_completed(hop(message(id="env-2")))
    assert not completed.is_completed(hop(message(route={"prev": [], "curr": "infer", "next": []})))


def test_an_end_is_claimed_once(state: Recording) -> None:
    claims = EndClaims(state.dynamodb, "asya-shop-sink", KEPT_SECONDS)  # type: ignore[arg-type]
    first = Claim("env-1", 0, "succeeded", "succeeded/env-1.json")
    other = Claim("env-1", 0, "failed", "failed/env-1.json")
    second = Claim("env-2", 2, "failed", "failed/env-2.json")
    seconds = NOW.timestamp()
    assert claims.take(first, epoch_seconds=seconds) == ClaimResult("taken", first, first.generation)
    assert claims.take(other, epoch_seconds=seconds) == ClaimResult("refused", first, first.generation)
    again = claims.take(replace(second, key="elsewhere"), epoch_seconds=seconds)
    assert again == ClaimResult("taken", second, second.generation, "succeeded/env-2.json")
    late = replace(second, generation=1, phase="succeeded")
    assert claims.take(late, epoch_seconds=seconds).outcome == "refused"
    assert claims.take(replace(first, generation=1), epoch_seconds=seconds).outcome == "taken"


def test_a_dead_letter_is_reported_once(state: Recording) -> None:
    marks = ReportMarks(state.dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    assert marks.find(["message-1", "message-2"]) == {"message-1"}


def breaker_of(state: Recording, actor: str) -> Breaker:
    def fail(error: Exception) -> None:
        raise error

    return Breaker(
        state.dynamodb,  # type: ignore[arg-type]
        table="asya-shop-breaker",
        actor=actor,
        limits=LIMITS,
        probe_seconds=10.0,
        on_error=fail,
    )


def test_an_open_circuit_rejects_and_is_probed_when_it_is_time(state: Recording) -> None:
    breaker, opened_until = breaker_of(state, "open"), (NOW + timedelta(seconds=31)).timestamp()
    assert breaker.acquire("a", NOW + timedelta(seconds=2)) == Rejection(opened_until)
    assert breaker.acquire("a", NOW + timedelta(seconds=32)) == Permit("a", 1, is_probe=True)


def test_a_probe_goes_on(state: Recording) -> None:
    soon = NOW + timedelta(seconds=41)
    assert breaker_of(state, "probed").acquire("another", soon) == Rejection((NOW + timedelta(seconds=50)).timestamp())
    breaker = breaker_of(state, "probed")
    permit = breaker.acquire("prober", soon)
    assert permit == Permit("prober", 1, is_probe=True)
    assert isinstance(permit, Permit)
    closed = breaker.record(permit, "succeeded", soon)
    assert closed is not None
    assert (closed.era, closed.open_until) == (2, None)


def test_failures_are_counted_on(state: Recording) -> None:
    breaker, soon = breaker_of(state, "failing"), NOW + timedelta(seconds=5)
    permit = breaker.acquire("b", soon)
    assert permit == Permit("b", 0)
    assert isinstance(permit, Permit)
    opened = breaker.record(permit, "failed", soon)
    assert opened is not None
    assert opened.open_until == (soon + timedelta(seconds=30)).timestamp()


def test_objects_lie_where_they_lay(state: Recording) -> None:
    """A reader that looks elsewhere finds nothing; this is every key that was written."""
    hashed = {key for key in state.objects if key.startswith(("payloads/", "results/index/"))}
    assert state.objects.keys() - hashed == {
        *RESULTS,
        *("paused/order%2F7%20%C3%BC/1/1.json", "paused/order%2F7%20%C3%BC/1/1.json.notified", "paused/env-2/0/3.json"),
        *("frames/env-1/0/1.json", "hops/env-1/0/1.json", "dlq/env-1/0/1.json", "dlq/unreadable/message-9"),
    }
    assert state.objects["dlq/unreadable/message-9"] == b"no envelope"


def _plain(envelope: Envelope) -> dict[str, Any]:
    """Payload and headers byte by byte but for white space."""
    found: dict[str, Any] = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
    for name in ("headers", "extra", "status_extra"):
        found[name] = {key: msgspec.json.format(value, indent=-1) for key, value in found[name].items()}
    return found | {"payload": msgspec.json.format(found["payload"], indent=-1)}


def _row(envelope: Envelope, reason: str, uri: str, by: str) -> ResultRow:
    failed = reason != "Completed"
    return ResultRow(
        namespace="shop",
        id=envelope.id,
        generation=1,
        parent_id="root",
        root_id="root",
        phase="failed" if failed else "succeeded",
        reason=reason,
        last_actor="score",
        route=("split", "score"),
        attempt=2,
        error_type="shop.BadOrder" if failed else None,
        error_message="no such airport …" if failed else None,
        created_at=STARTED,
        ended_at=AT,
        seconds=59.5,
        payload_bytes=len(bytes(envelope.payload)),
        result_uri=uri,
        recorded_by=by,
    )
