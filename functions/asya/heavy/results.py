"""Turns the result of one envelope into deliveries, by the rules of the sidecar (`protocol §10`)."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Raw

from asya.function.delivery import Delivery
from asya.function.hop import Hop
from asya.function.targets import TargetError
from asya.heavy.part_results import UnreadableFrameError
from asya.heavy.run_failures import SPARK_JOB_FAILED
from asya.protocol import headers
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame
from asya.protocol.job_runs import ResultFrame, ResultHead
from asya.sidecar import outcome
from asya.sidecar.children import TooManyChildrenError, check_count
from asya.sidecar.slices import SecondFrameError, check_frames, must_leave_together


def deliveries(
    hop: Hop,
    head: ResultHead,
    frames: Iterable[ResultFrame],
    *,
    first: int = 0,
    now: datetime,
    jitter: float,
    numbered: bool = False,
) -> Iterator[Delivery | None]:
    """The deliveries of one member.

    Args:
        frames: all frames of the job.
        first: number of deliveries already handled for this member.
        jitter: uniform in [0, 1).
        numbered: whether this hop has the numbered ids of the envelope.

    Yields:
        The deliveries; None in place of frame 0 of a late copy, which left before its task paused.
    """
    try:
        # Once more than one delivery has left, they were frames, which another limit allowed.
        check_count(hop, head.frames if first <= 1 else 0)
    except TooManyChildrenError as error:
        refused = outcome.too_many_children(hop, error, now=now, frames_sent=int(hop.is_late_copy))
        return islice((refused,), first, None)
    return islice(_all_deliveries(hop, head, frames, now=now, jitter=jitter, numbered=numbered), first, None)


def _all_deliveries(
    hop: Hop, head: ResultHead, frames: Iterable[ResultFrame], *, now: datetime, jitter: float, numbered: bool
) -> Iterator[Delivery | None]:
    index, earlier = 0, int(hop.is_late_copy)
    try:
        for frame in _checked_frames(hop, head, frames, now):
            delivery = outcome.frame(hop, frame, index, now=now, numbered=numbered)
            yield None if hop.is_late_copy and not index else delivery
            index += 1
    except SecondFrameError as error:
        yield _failed(hop, error.error, earlier, now, jitter)
        return
    except UnreadableFrameError as error:
        problem = ErrorInfo(type=SPARK_JOB_FAILED, message=f"a frame of the result cannot be read: {error}")
        yield _failed(hop, problem, max(index, earlier), now, jitter)
        return
    except TargetError as error:
        yield outcome.mismatch(hop, error, now=now, frames_sent=max(index, earlier))
        return
    if head.end != "done":
        yield _ended(hop, head, max(index, earlier), now, jitter)
    elif not index and not earlier:
        yield outcome.empty(hop, now=now)


def failure(hop: Hop, error: ErrorInfo, *, now: datetime, jitter: float) -> Delivery:
    """The delivery of a member without a result: it fails with the error of its run, under its actor's rules."""
    return _failed(hop, error, int(hop.is_late_copy), now, jitter)


def _checked_frames(hop: Hop, head: ResultHead, results: Iterable[ResultFrame], now: datetime) -> Iterator[Frame]:
    """The frames to send; a slice and an origin send all their frames or no frame.

    Raises:
        SecondFrameError, TargetError: before the first frame.
    """
    frames = (_frame(result, alone=head.frames == 1) for result in results)
    ahead = list(islice(frames, 2))
    if ahead and must_leave_together(hop, ahead[0]):
        if head.end != "done":
            return
        check_frames(hop, ahead)
        for index, frame in enumerate(ahead):  # raises TargetError; all slices after the first have the same target
            outcome.frame(hop, frame, index, now=now)
    yield from ahead
    yield from frames


def _ended(hop: Hop, head: ResultHead, sent: int, now: datetime, jitter: float) -> Delivery:
    error = head.error or ErrorInfo(type=SPARK_JOB_FAILED, message="the job reported a failure without an error")
    match head.end:
        case "timed_out":
            limit = timedelta(seconds=head.limit)
            return outcome.timed_out(hop, limit, by_deadline=head.by_deadline, now=now, jitter=jitter, frames_sent=sent)
        case "crashed":
            return outcome.crashed(hop, error, now=now, frames_sent=sent)
        case _:
            return _failed(hop, error, sent, now, jitter)


def _failed(hop: Hop, error: ErrorInfo, frames_sent: int, now: datetime, jitter: float) -> Delivery:
    reason: outcome.FailureReason = "SparkJobFailed" if error.type == SPARK_JOB_FAILED else "RuntimeError"
    try:
        return outcome.failed(hop, error, now=now, jitter=jitter, frames_sent=frames_sent, reason=reason)
    except TargetError as unknown:
        return outcome.mismatch(hop, unknown, now=now)


def _frame(result: ResultFrame, *, alone: bool) -> Frame:
    payload = result.payload if isinstance(result.payload, Raw) else None
    # The job writes its results itself, so they may have headers that a handler may not set (`protocol §7`).
    own = {name: raw for name, raw in result.headers.items() if not headers.is_read_only(name)}
    return Frame(payload, result.next, _changes(own), _changes(result.status), alone)


def _changes(values: dict[str, Raw]) -> dict[str, Raw | None]:
    return {name: None if bytes(raw) == b"null" else raw for name, raw in values.items()}
