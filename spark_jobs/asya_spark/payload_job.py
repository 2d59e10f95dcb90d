"""Payload jobs: `job(spark, payload)`, one call for each envelope, each with its own time limit (`protocol §10`)."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from asya.protocol import states
from asya.protocol.numbers import rounded
from asya_spark import clock
from asya_spark.attempt import Attempt, Result, ResultTooLarge
from asya_spark.calls.errors import JobError, describe
from asya_spark.calls.evaluate import ProcessingError, frames
from asya_spark.calls.sessions import ContextStoppedError, active_session
from asya_spark.calls.time_limit import Calls, Ending
from asya_spark.calls.typed_job import TypedJob, typed_job
from asya_spark.context import Context, active_context
from asya_spark.manifest import Envelope, Member, envelopes

PayloadJob = Callable[[SparkSession, Any], Any]


@dataclass(frozen=True)
class _Limit:
    """The time limit of a call.

    Attributes:
        seconds: what the actor's timeout and the deadline allow.
        by_deadline: whether the deadline sets it.
        left: what the run allows.
    """

    seconds: float
    by_deadline: bool
    left: float

    @property
    def is_cut_short(self) -> bool:
        return self.seconds > self.left

    @property
    def allowed(self) -> float:
        return max(min(self.seconds, self.left), 1.0) if self.is_cut_short else self.seconds


@dataclass(frozen=True)
class _AtWork:
    """A member at work."""

    member: Member
    limit: _Limit
    session: SparkSession
    result: Result
    started_at: float = field(default_factory=time.monotonic)


def run_payloads(job: PayloadJob, attempt: Attempt) -> int | None:
    """Calls the job for each member; the journal names the members first, in case the process fails.

    Returns:
        The index of the first member that the run has no time for. All without a result run again, uncharged.

    Raises:
        ContextStoppedError: the SparkContext is gone, so the process ends as if it had died.
        SignatureError: the job cannot be called with a session and a payload.
    """
    return _PayloadRun(typed_job(job), attempt).run()


class _PayloadRun:
    """The calls of one run: one after the other, or several at the same time (`protocol §10.parallel`)."""

    def __init__(self, job: TypedJob, attempt: Attempt) -> None:
        self._job = job
        self._attempt = attempt
        self._members = attempt.manifest.members
        bodies = envelopes(attempt.files, attempt.manifest, self._members, exact=job.has_decimals)
        self._envelopes: Iterator[Envelope] = (replace(each, headers=rounded(each.headers)) for each in bodies)
        self._calls: Calls[None] = Calls()
        self._at_work: dict[int, _AtWork] = {}
        self._started = 0
        self._longest = 0.0
        self._unreached: int | None = None

    def run(self) -> int | None:
        """Runs the members to their ends; see `run_payloads`."""
        attempt = self._attempt
        while self._start_next() or self._at_work:
            if self._at_work:
                self._end(*self._calls.wait())
        attempt.writer.flush()
        if self._unreached is not None:
            print(
                f"asya_spark: no time left for {len(self._members) - attempt.writer.done} envelopes; they run again",
                flush=True,
            )
        attempt.journal.record(started=self._started)
        return self._unreached

    def _start_next(self) -> bool:
        """Starts as many members as there is room for; returns whether it started any."""
        free = self._attempt.manifest.parallel - len(self._at_work)
        members = self._with_time(self._members[self._started : self._started + free])
        self._started += len(members)
        at_work = (*self._at_work, *(member.index for member in members))
        if at_work and at_work != self._attempt.journal.at_work:
            self._attempt.journal.record(at_work, started=self._started)
        for member in members:
            self._start(member, next(self._envelopes))
        return bool(members)

    def _with_time(self, members: Sequence[Member]) -> Sequence[Member]:
        """The members if the run has time for them."""
        if self._unreached is not None or not members:
            return ()
        # The first member always runs, so every run makes progress.
        if members[0].index and self._attempt.clock.left() < self._longest:
            self._unreached = members[0].index
            return ()
        return members

    def _start(self, member: Member, envelope: Envelope) -> None:
        attempt, manifest = self._attempt, self._attempt.manifest
        seconds, by_deadline = call_limit(manifest.timeout, member.deadline_at, clock.now())
        result = attempt.result(member.index)
        if seconds <= 0:
            result.end(states.TIMED_OUT, limit=0.0, by_deadline=True)
            self._add(member, result)
            return
        limit = _Limit(seconds, by_deadline, attempt.clock.left())
        session = attempt.sessions.open()
        self._at_work[member.index] = _AtWork(member, limit, session, result)
        work = self._work(member, envelope, session, result)
        self._calls.start(member.index, limit.allowed, work, session, f"{attempt.name}/{member.index}")

    def _work(self, member: Member, envelope: Envelope, session: SparkSession, result: Result) -> Callable[[], None]:
        attempt = self._attempt
        # Frame 0 is no child.
        most = None if attempt.manifest.max_children is None else attempt.manifest.max_children + 1

        def publish(message: Mapping[str, Any]) -> None:
            attempt.partials.add(member.index, message)

        current = Context(
            id=envelope.id,
            parent_id=envelope.parent_id,
            headers=envelope.headers,
            actor=attempt.manifest.actor,
            position=member.position,
            attempt=member.attempt,
            deadline_at=member.deadline_at,
            scratch=f"{attempt.scratch}{member.index}/",
            generation=member.generation,
            run=attempt.manifest.run_id,
            _publish=publish,
        )

        def work() -> None:
            with active_context(current), active_session(session):
                for frame in frames(
                    lambda: self._job.call(session, envelope.payload), envelope, publish, self._job.give
                ):
                    result.add(frame)
                    if most is not None and result.frames > most:
                        break  # the completion refuses the result for its number of frames

        return work

    def _end(self, index: int, ending: Ending[None]) -> None:
        """Writes the result of a call that ended, unless the run's time ended before the member's limit."""
        call = self._at_work.pop(index)
        self._longest = max(self._longest, time.monotonic() - call.started_at)
        call.result.work = self._attempt.sessions.work_of(f"{self._attempt.name}/{index}")
        try:
            self._attempt.sessions.close(call.session)
        except ContextStoppedError:
            # The journal still names this member, and it names the parts, so that nothing that is done runs again.
            self._attempt.writer.flush()
            self._attempt.journal.record((*self._at_work, index), started=self._started)
            raise
        if ending.timed_out and call.limit.is_cut_short and index:
            call.result.end(
                states.TIMED_OUT, limit=call.limit.allowed
            )  # seals the result against late frames of the thread
            self._unreached = min(index, index if self._unreached is None else self._unreached)
            return
        _seal(call, ending, keep_frames=self._attempt.manifest.streamed)
        self._add(call.member, call.result)

    def _add(self, member: Member, result: Result) -> None:
        self._attempt.writer.add(result)
        print(
            f"asya_spark: {member.id} ({member.index + 1} of {len(self._members)}): {result.summary}",
            flush=True,
        )


def _seal(call: _AtWork, ending: Ending[None], *, keep_frames: bool) -> None:
    """Ends the result of a call as the call ended."""
    result, limit = call.result, call.limit
    match ending.error:
        case _ if ending.timed_out:
            result.end(states.TIMED_OUT, limit=limit.allowed, by_deadline=limit.by_deadline, keep_frames=keep_frames)
        case None:
            result.end(states.DONE)
        case ProcessingError() as error:
            result.end(states.FAILED, error=JobError("processing_error", str(error)), keep_frames=keep_frames)
        case ResultTooLarge() as error:
            result.end(states.FAILED, error=error.error, keep_frames=keep_frames)
        case Exception() as error:
            result.end(states.FAILED, error=describe(error), keep_frames=keep_frames)
        case error:
            result.end(states.CRASHED, error=describe(error), keep_frames=keep_frames)


def call_limit(timeout: float, deadline_at: str | None, now: datetime) -> tuple[float, bool]:
    """Seconds that a call may take, and whether the deadline sets them (`protocol §5.7`)."""
    if deadline_at is None:
        return timeout, False
    left = (datetime.fromisoformat(deadline_at) - now).total_seconds()
    return (timeout, False) if left >= timeout else (left, True)
