"""Reads the results of a job run, turns them into deliveries, and counts the outcomes of its envelopes (`protocol §10`).

Any line of a part may be wrong. A result that cannot be read charges its own member. All results after an unreadable head are
unreadable, because nothing says where the next one begins.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import Delivery, Diversion, Hop
from asya.function.outage_words import Outages, no_outages
from asya.function.targets import TargetError
from asya.heavy.run_failures import SPARK_JOB_FAILED, FailureDecision, failed_for_memory
from asya.protocol import headers, ids, names, states, status
from asya.protocol.envelope import Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import ResultFrame, ResultHead, ResultPart
from asya.protocol.slices import own_place
from asya.protocol.task_key import WrongKeyError
from asya.protocol.text import RESULT_LINE_LIMIT
from asya.protocol.times import format_time
from asya.senders.task_keys import check_places
from asya.sidecar import outcome
from asya.sidecar.arrival import LATE_COPY, MIN_TIME_LEFT, divert, is_late_copy
from asya.sidecar.slices import SecondFrameError, TooManyChildrenError, check_count, check_frames, must_leave_together
from asya.tasks.task_state import TaskState

Outcome = Literal["succeeded", "failed", "retried", "again", "canceled"]


class RunOutcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The envelopes of a run by outcome.

    Attributes:
        succeeded: whose call gave its result.
        failed: whose call failed, or that the run is charged with, and that end or go to another actor.
        retried: the same, but their policy lets them run again.
        again: without a result, to run again without a charge.
        canceled: whose task was canceled meanwhile.
    """

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    again: int = 0
    canceled: int = 0

    @property
    def total(self) -> int:
        """The number of envelopes."""
        return self.succeeded + self.failed + self.retried + self.again + self.canceled

    def plus(self, outcome: Outcome) -> "RunOutcomes":
        """The counts with one more envelope."""
        return replace(self, **{outcome: getattr(self, outcome) + 1})

    @property
    def word(self) -> str:
        """The run in one word or two: that of all envelopes, else what went wrong with a part of them."""
        found = [name for name in self.__struct_fields__ if getattr(self, name)]
        if len(found) == 1:
            return {"again": "runs again"}.get(found[0], found[0])
        if self.failed or self.retried:
            return "partly failed" if self.failed else "partly retried"
        return "partly canceled" if self.canceled else "partly again"

    @property
    def text(self) -> str:
        """The counts that are not 0: `19 succeeded, 1 failed`."""
        counts = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return ", ".join(f"{count} {name}" for name, count in counts if count)


def outcome_of(head: ResultHead, first: Delivery | None) -> Outcome:
    """The outcome of an envelope with a result.

    Args:
        head: the head of the result.
        first: its first delivery; None if that left before.
    """
    if first is not None and first.kind == "retry":
        return "retried"
    is_refused = first is not None and first.kind == "sump"
    return states.SUCCEEDED if head.end == states.DONE and not is_refused else states.FAILED


def runs_again_larger(head: ResultHead, decision: FailureDecision) -> bool:
    """Whether a call ran out of memory, and its envelope runs again in the next size (`protocol §10.size.larger.call`)."""
    is_whole = head.end == states.FAILED and not head.frames
    return bool(decision.larger) and is_whole and head.error is not None and failed_for_memory(head.error)


def outcome_of_charge(delivery: Delivery) -> Outcome:
    """The outcome of an envelope that its run is charged with."""
    return "retried" if delivery.kind == "retry" else states.FAILED


def outcome_of_diversion(diversion: Diversion) -> Outcome:
    """The outcome of an envelope that ended while its run was at work: past its deadline, or canceled."""
    return states.FAILED if diversion.why == "SlaExpired" else states.CANCELED


FRAME_LIMIT = 2**31  # far above what a part can hold

LINE_LIMIT = RESULT_LINE_LIMIT  # a longer line would use up the memory of the completion
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What a decoder raises for bytes that a job wrote: no JSON, no UTF-8, other fields, or lists in lists in lists."""

_FILE = re.compile(r"part-\d{6,}\.jsonl")

_head_decoder = msgspec.json.Decoder(ResultHead)
_frame_decoder = msgspec.json.Decoder(ResultFrame)


class UnreadableFrameError(ValueError):
    """A line of a result is not the frame that its head announces."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of one member.

    Attributes:
        index: the index of the member in the manifest.
        line: the line where the result begins. Each unreadable result counts as one line.
        head: None if the result cannot be read.
        frames: the frames, decoded one by one; an unreadable one raises `UnreadableFrameError`.
        problem: why the result cannot be read.
    """

    index: int
    line: int
    head: ResultHead | None
    frames: Iterator[ResultFrame] = field(default_factory=lambda: iter(()))
    problem: str = ""


def ordered_parts(parts: Sequence[ResultPart], members: int) -> tuple[ResultPart, ...]:
    """The parts up to the first that names no file of a part, no members of the run, or members of an earlier part."""
    taken = bytearray(members)
    for count, part in enumerate(parts):
        span = slice(part.first, part.last + 1)
        if not (_FILE.fullmatch(part.file) and 0 <= part.first <= part.last < members and not any(taken[span])):
            return tuple(parts[:count])
        taken[span] = b"\1" * (part.last + 1 - part.first)
    return tuple(parts)


def part_results(part: ResultPart, lines: Iterator[bytes]) -> Iterator[PartResult]:
    """The results of the members of a part, in order; each one's frames are read before the next result."""
    line = 0
    for index in range(part.first, part.last + 1):
        try:
            head = _head(next(lines, b""), index)
        except UNREADABLE as error:
            problem = f"{part.file}, line {line + 1}: {error}"
            yield from unreadable_results(part, problem, first=index, line=line)
            return
        rest = islice(lines, head.frames)
        yield PartResult(index, line, head, _frames(rest, part, line, head.frames))
        for _ in rest:
            pass  # a diverted result leaves frames unread
        line += 1 + head.frames


def unreadable_results(part: ResultPart, problem: str, *, first: int, line: int = 0) -> Iterator[PartResult]:
    """The results of the members of a part from `first` on, all unreadable."""
    for index in range(first, part.last + 1):
        yield PartResult(index, line + index - first, None, problem=problem)


def _head(text: bytes, index: int) -> ResultHead:
    head = _head_decoder.decode(text)
    if head.index != index:
        raise ValueError(f"the result of member {index} is missing")
    if not 0 <= head.frames <= FRAME_LIMIT:
        raise ValueError(f"a result cannot have {head.frames} frames")
    return head


def _frames(lines: Iterator[bytes], part: ResultPart, line: int, count: int) -> Iterator[ResultFrame]:
    number = 0
    for number, text in enumerate(lines, start=1):
        try:
            frame = _frame_decoder.decode(text)
        except UNREADABLE as error:
            raise UnreadableFrameError(f"{part.file}, line {line + 1 + number}: {error}") from None
        yield frame
    if number < count:
        raise UnreadableFrameError(f"{part.file}, line {line + 1 + number}: {count - number} frames are missing")


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a part, without their ends; a line above `LINE_LIMIT` is empty, so it is unreadable."""
    pending: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield _joined([*pending, end], size + len(end))
            pending, size = [], 0
        size += len(rest)
        pending = [*pending, rest] if size <= LINE_LIMIT else []
    if size:
        yield _joined(pending, size)


def _joined(pieces: Sequence[bytes], size: int) -> bytes:
    return b"".join(pieces) if size <= LINE_LIMIT else b""


def check_before_run(
    hop: Hop, state: TaskState | None, *, now: datetime, outages: Outages = no_outages
) -> Diversion | None:
    """The diversion of an envelope that is canceled or too late to join a run; None if it may run."""
    if is_late_copy(hop, state):
        return _canceled_late_copy(hop, state)
    return _canceled(hop, state, now) or _too_late(hop, MIN_TIME_LEFT, f"before {hop.actor} started", now, outages)


def check_after_run(
    hop: Hop, state: TaskState | None, *, now: datetime, outages: Outages = no_outages
) -> Diversion | None:
    """The diversion of an envelope that was canceled, or missed its deadline, during its run; None if it continues."""
    if is_late_copy(hop, state):
        return _canceled_late_copy(hop, state)
    when = f"before the results of {hop.actor} were routed"
    return _canceled(hop, state, now) or _too_late(hop, timedelta(0), when, now, outages)


def with_late_copy(hop: Hop, state: TaskState | None) -> Hop:
    """The hop, marked if only its later frames may leave; the deadline of such a hop is void (`protocol §5.4`)."""
    return replace(hop, is_late_copy=True, deadline=None) if is_late_copy(hop, state) else hop


def is_too_late_to_start(deadline_at: datetime | None, now: datetime) -> bool:
    """Whether a deadline leaves too little time to start; this needs no envelope."""
    return deadline_at is not None and deadline_at - now < MIN_TIME_LEFT


def _canceled_late_copy(hop: Hop, state: TaskState | None) -> Diversion | None:
    is_canceled = state is not None and state.is_canceled
    return Diversion(hop.envelope.id, (), LATE_COPY) if is_canceled else None


def _canceled(hop: Hop, state: TaskState | None, now: datetime) -> Diversion | None:
    if state is None or not state.is_canceled:
        return None
    ended = status.ended(hop.status, phase=states.CANCELED, reason="Canceled", now=format_time(now))
    return divert(hop, names.SINK, ended, why="Canceled")


def _too_late(hop: Hop, least: timedelta, when: str, now: datetime, outages: Outages) -> Diversion | None:
    if hop.deadline is None or hop.deadline - now >= least:
        return None
    message = f"Deadline {format_time(hop.deadline)} passed {when}{outages(hop.began_at)}"
    error = ErrorInfo(type="Timeout", message=message)
    ended = status.failed(hop.status, reason="Timeout", now=format_time(now), error=error)
    return divert(hop, names.SINK, ended, why="SlaExpired")


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
    if head.end != states.DONE:
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
    frames = (_frame(hop, result, index, alone=head.frames == 1) for index, result in enumerate(results))
    ahead = list(islice(frames, 2))
    if ahead and must_leave_together(hop, ahead[0]):
        if head.end != states.DONE:
            return
        check_frames(hop, ahead)
        for index, frame in enumerate(ahead):  # raises TargetError; all slices after the first have the same target
            outcome.frame(hop, frame, index, now=now)
    yield from ahead
    yield from frames


def _ended(hop: Hop, head: ResultHead, sent: int, now: datetime, jitter: float) -> Delivery:
    error = head.error or ErrorInfo(type=SPARK_JOB_FAILED, message="the job reported a failure without an error")
    match head.end:
        case states.TIMED_OUT:
            limit = timedelta(seconds=head.limit)
            return outcome.timed_out(hop, limit, by_deadline=head.by_deadline, now=now, jitter=jitter, frames_sent=sent)
        case states.CRASHED:
            return outcome.crashed(hop, error, now=now, frames_sent=sent)
        case _:
            return _failed(hop, error, sent, now, jitter)


def _failed(hop: Hop, error: ErrorInfo, frames_sent: int, now: datetime, jitter: float) -> Delivery:
    reason: outcome.FailureReason = "SparkJobFailed" if error.type == SPARK_JOB_FAILED else "RuntimeError"
    try:
        return outcome.failed(hop, error, now=now, jitter=jitter, frames_sent=frames_sent, reason=reason)
    except TargetError as unknown:
        return outcome.mismatch(hop, unknown, now=now)


def _frame(hop: Hop, result: ResultFrame, index: int, *, alone: bool) -> Frame:
    payload = result.payload if isinstance(result.payload, Raw) else None
    # The job writes its results itself, so they may have headers that a handler may not set (`protocol §7`).
    own = {name: raw for name, raw in result.headers.items() if not headers.is_read_only(name)}
    if headers.FAN_IN in own:
        _check_places(hop, own[headers.FAN_IN], index)
    return Frame(payload, result.next, _changes(own), _changes(result.status), alone)


def _check_places(hop: Hop, header: Raw, index: int) -> None:
    """Check the slice header that a job gives a frame: the crew believes the role of the completion (`protocol §10.job-sets`).

    Raises:
        UnreadableFrameError: the set is that of another task, or the place that of another slice.
    """
    received = hop.envelope
    envelope, place = replace(received, headers=received.headers | {headers.FAN_IN: header}), own_place(received)
    if index:
        child = ids.child_id(received.id, received.generation, received.route.position, index)
        envelope, place = replace(envelope, id=child, parent_id=received.id), own_place(envelope)
    try:
        check_places(envelope, place)
    except WrongKeyError as error:
        raise UnreadableFrameError(f"headers.{headers.FAN_IN} of frame {index}: {error}") from None


def _changes(values: dict[str, Raw]) -> dict[str, Raw | None]:
    return {name: None if bytes(raw) == b"null" else raw for name, raw in values.items()}
