"""Payload jobs: `job(spark, payload)`, one call for each envelope, each with its own time limit (`protocol §10`)."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from asya_spark.attempt import Attempt
from asya_spark.context import Context, active_context
from asya_spark.errors import JobError, describe
from asya_spark.evaluate import ProcessingError, frames
from asya_spark.manifest import Envelope, Member, load_envelope
from asya_spark.results import Result
from asya_spark.time_limit import run_within

PayloadJob = Callable[[SparkSession, Any], Any]


def run_payloads(job: PayloadJob, attempt: Attempt) -> int | None:
    """Calls the job for each member; the journal names the member first, in case the process fails.

    Returns:
        The index of the first member that the run has no time for; it and the later ones run again, uncharged.
    """
    members = attempt.manifest.members
    unreached, longest = None, 0.0
    for member in members:
        # The first member always runs, so every run makes progress.
        if member.index and attempt.clock.left() < longest:
            unreached = member.index
            break
        attempt.journal.record(member.index)
        envelope = load_envelope(attempt.files, attempt.manifest, member)
        started_at = time.monotonic()
        result = _result(job, attempt, member, envelope)
        longest = max(longest, time.monotonic() - started_at)
        if result is None:
            unreached = member.index
            break
        attempt.writer.add(result)
        print(f"asya_spark: {member.id} ({member.index + 1} of {len(members)}): {result.summary}", flush=True)
    attempt.writer.flush()
    if unreached is not None:
        print(f"asya_spark: no time left for {len(members) - unreached} envelopes; they run again", flush=True)
    attempt.journal.record(None)
    return unreached


def _result(job: PayloadJob, attempt: Attempt, member: Member, envelope: Envelope) -> Result | None:
    """The result of one member; None if the run's time ended before the member's limit."""
    manifest, spark = attempt.manifest, attempt.spark
    result = attempt.result(member.index)
    limit, by_deadline = call_limit(manifest.timeout, member.deadline_at, datetime.now(UTC))
    if limit <= 0:
        result.end("timed_out", limit=0.0, by_deadline=True)
        return result
    cut_short = limit > (left := attempt.clock.left())
    limit = max(min(limit, left), 1.0) if cut_short else limit

    def publish(message: Mapping[str, Any]) -> None:
        attempt.partials.add(member.index, message)

    current = Context(
        id=envelope.id,
        parent_id=envelope.parent_id,
        headers=envelope.headers,
        actor=manifest.actor,
        position=member.position,
        attempt=member.attempt,
        deadline_at=member.deadline_at,
        scratch=f"{attempt.scratch}{member.index}/",
        _publish=publish,
    )

    def work() -> None:
        with active_context(current):
            for frame in frames(lambda: job(spark, envelope.payload), envelope, publish):
                result.add(frame)

    ending = run_within(limit, work, spark.sparkContext, f"{attempt.name}/{member.index}")
    if ending.timed_out and cut_short and member.index:
        result.end("timed_out", limit=limit)  # seals the result against late frames of the thread
        return None
    keep_frames = manifest.streamed
    match ending.error:
        case _ if ending.timed_out:
            result.end("timed_out", limit=limit, by_deadline=by_deadline, keep_frames=keep_frames)
        case None:
            result.end("done")
        case ProcessingError() as error:
            result.end("failed", error=JobError("processing_error", str(error)), keep_frames=keep_frames)
        case Exception() as error:
            result.end("failed", error=describe(error), keep_frames=keep_frames)
        case error:
            result.end("crashed", error=describe(error), keep_frames=keep_frames)
    return result


def call_limit(timeout: float, deadline_at: str | None, now: datetime) -> tuple[float, bool]:
    """Seconds that a call may take, and whether the deadline sets them (`protocol §5.7`)."""
    if deadline_at is None:
        return timeout, False
    left = (datetime.fromisoformat(deadline_at) - now).total_seconds()
    return (timeout, False) if left >= timeout else (left, True)
