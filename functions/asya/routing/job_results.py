"""From what a job said about one envelope to what leaves: the same decisions as in the sidecar (`protocol §10`)."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Raw

from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.job_runs import ResultFrame, ResultHead
from asya.routing import outcome
from asya.routing.delivery import Delivery
from asya.routing.hop import Hop
from asya.routing.targets import UnknownTargetError

SPARK_JOB_FAILED = "SparkJobFailed"


def deliveries(
    hop: Hop, head: ResultHead, frames: Iterable[ResultFrame], *, first: int = 0, now: datetime, jitter: float
) -> Iterator[Delivery]:
    """What leaves for one member.

    Args:
        frames: those from number `first` on; the earlier ones have left.
        jitter: uniform in [0, 1).
    """
    index = first
    try:
        for frame in frames:
            yield outcome.frame(hop, _frame(frame), index, now=now)
            index += 1
    except UnknownTargetError as error:
        yield outcome.mismatch(hop, error, now=now, frames_sent=index)
        return
    if head.end != "done":
        yield _ended(hop, head, now, jitter)
    elif not index:
        yield outcome.empty(hop, now=now)


def lost(hop: Hop, error: ErrorInfo, *, now: datetime, jitter: float) -> Delivery:
    """A member without a result: charged with what the run died of, under its actor's rules."""
    return _failed(hop, error, 0, now, jitter)


def _ended(hop: Hop, head: ResultHead, now: datetime, jitter: float) -> Delivery:
    error = head.error or ErrorInfo(type=SPARK_JOB_FAILED, message="the job reported a failure without an error")
    match head.end:
        case "timed_out":
            limit = timedelta(seconds=head.limit)
            return outcome.timed_out(
                hop, limit, by_deadline=head.by_deadline, now=now, jitter=jitter, frames_sent=head.frames
            )
        case "crashed":
            return outcome.crashed(hop, error, now=now, frames_sent=head.frames)
        case _:
            return _failed(hop, error, head.frames, now, jitter)


def _failed(hop: Hop, error: ErrorInfo, frames_sent: int, now: datetime, jitter: float) -> Delivery:
    reason: outcome.FailureReason = "SparkJobFailed" if error.type == SPARK_JOB_FAILED else "RuntimeError"
    try:
        return outcome.failed(hop, error, now=now, jitter=jitter, frames_sent=frames_sent, reason=reason)
    except UnknownTargetError as unknown:
        return outcome.mismatch(hop, unknown, now=now)


def _frame(result: ResultFrame) -> Frame:
    return Frame(result.payload, result.next, _changes(result.headers), _changes(result.status))


def _changes(values: dict[str, Raw]) -> dict[str, Raw | None]:
    return {name: None if bytes(raw) == b"null" else raw for name, raw in values.items()}
