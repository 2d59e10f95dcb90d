"""DataFrame jobs: `job(spark, envelopes: DataFrame) -> DataFrame`, one call for all envelopes of a run (`protocol §10`).

Input columns: `id`, `payload` (JSON text, or the declared type), `headers` (JSON text). Output columns: `id`, `payload`
(JSON text or any Spark type), optionally `route_next`, `error`, `ordinal`. Each row is a frame, in order of `ordinal`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from asya.protocol import states
from asya.protocol.numbers import json_text
from asya_spark import strict_json
from asya_spark.attempt import Attempt, Result, ResultTooLarge
from asya_spark.calls.errors import JobError, describe
from asya_spark.calls.sessions import active_session
from asya_spark.calls.time_limit import Ending, run_within
from asya_spark.columns import PayloadColumn, number_problem, payload_text
from asya_spark.context import Context, active_context
from asya_spark.manifest import Member, envelopes

DataFrameJob = Callable[[SparkSession, DataFrame], DataFrame]
_Row = tuple[str, Any, str]

_INDEX = "__asya_index"
_PROBLEM = "__asya_problem"
# Failed calls before the remaining envelopes fail with the last error; enough to isolate two bad ones among 10,000.
FAILED_CALL_LIMIT = 32
_NO_GROUP: tuple[int | None, Iterator[Row] | None] = (None, None)


class JobResultError(ValueError):
    """The job returned rows that are not results."""


class ResultFormatError(JobResultError):
    """The job returned a wrong type or wrong columns, whatever the envelopes are."""


def run_dataframe(job: DataFrameJob, attempt: Attempt, column: PayloadColumn) -> None:
    """Calls the job and writes a result for each member.

    A payload that does not fit the declared type fails before the call, which has the others. If the job raises, it is called
    again with each half of the envelopes, and so on. One bad envelope fails alone, with its own error. All calls together have
    the actor's timeout.
    """
    attempt.journal.record()
    calls = _Calls(job, attempt, column)
    calls.run(attempt.manifest.members)
    calls.write_refused()
    attempt.writer.flush()
    attempt.journal.record()


class _Calls:
    """The calls of one job in one run."""

    def __init__(self, job: DataFrameJob, attempt: Attempt, column: PayloadColumn) -> None:
        self._job = job
        self._attempt = attempt
        self._column = column
        self._started_at = time.monotonic()
        self._ends = self._started_at + attempt.manifest.timeout
        self._failed = 0
        self._refused: deque[Result] = deque()

    def run(self, members: Sequence[Member]) -> None:
        """Calls the job for these members and writes a result for each that fits, in their order."""
        fitting, rows = self._fitting(members)
        if fitting:
            self._run(fitting, rows)

    def _fitting(self, members: Sequence[Member]) -> tuple[list[Member], list[_Row]]:
        """The members whose payloads fit the declared type, and their rows. The others fail."""
        fitting: list[Member] = []
        rows: list[_Row] = []
        bodies = envelopes(self._attempt.files, self._attempt.manifest, members, exact=True)
        for member, envelope in zip(members, bodies, strict=True):
            try:
                payload = self._column.value(envelope.payload)
            except Exception as error:  # noqa: BLE001 - a validator of the user's model may raise anything
                result = self._attempt.result(member.index)
                result.end(states.FAILED, error=describe(error))
                self._refused.append(result)
                continue
            fitting.append(member)
            rows.append((envelope.id, payload, json_text(envelope.headers)))
        if len(fitting) < len(members):
            refused = len(members) - len(fitting)
            print(f"asya_spark: {refused} of {len(members)} payloads do not fit payload_schema, and fail", flush=True)
        return fitting, rows

    def _run(self, members: Sequence[Member], rows: list[_Row]) -> None:
        session = self._attempt.sessions.open()
        try:
            ending = self._call(session, rows, members)
            if ending.timed_out:
                self._time_out(members)
                return
            error = ending.error or self._write(ending.value, members)
        finally:
            self._attempt.sessions.close(session)
        if error is None:
            return
        self._failed += 1
        if len(members) == 1 or isinstance(error, ResultFormatError) or self._failed >= FAILED_CALL_LIMIT:
            self._end(members, states.FAILED if isinstance(error, Exception) else states.CRASHED, error=describe(error))
            return
        message = self._attempt.journal.secrets.redact(f"{type(error).__name__}: {error}").splitlines()[0]
        print(
            f"asya_spark: the call with {len(members)} envelopes failed ({message}); calling with each half", flush=True
        )
        middle = (len(members) + 1) // 2
        self.run(members[:middle])
        self.run(members[middle:])

    def _call(self, session: SparkSession, rows: list[_Row], members: Sequence[Member]) -> Ending[DataFrame]:
        attempt, manifest = self._attempt, self._attempt.manifest
        current = Context(
            id=manifest.run_id,
            parent_id="",
            headers={},
            actor=manifest.actor,
            position=0,
            attempt=1,
            deadline_at=None,
            scratch=attempt.scratch,
            is_run=True,
            run=manifest.run_id,
            _publish=lambda message: attempt.partials.add(None, message),
        )

        def work() -> DataFrame:
            with active_context(current), active_session(session):
                frame = _frame(session, rows, members, self._column)
                rows.clear()  # a failed call makes its rows again, so the job has the memory meanwhile
                results = _ordered(session, self._job(session, frame), members, self._column)
                results = results.persist(StorageLevel.DISK_ONLY)
                results.count()  # evaluates the user's plan once, under its time limit
                return results

        left = min(self._ends - time.monotonic(), attempt.clock.left())
        return run_within(left, work, session, attempt.name) if left > 0 else Ending(timed_out=True)

    def _write(self, results: DataFrame | None, members: Sequence[Member]) -> JobResultError | None:
        """Writes the results of a call; returns an error before the first result is written."""
        if results is None:
            return ResultFormatError("the job returned None; it must return a DataFrame")
        try:
            for result in _results(self._attempt, results, members):
                self._add(result)
        except JobResultError as error:
            return error
        finally:
            results.unpersist()
        return None

    def write_refused(self, before: int | None = None) -> None:
        """Writes the results of payloads that did not fit, up to the one of a member. Parts of neighbors are few and large."""
        while self._refused and (before is None or self._refused[0].index < before):
            self._write_one(self._refused.popleft())

    def _add(self, result: Result) -> None:
        self.write_refused(result.index)
        self._write_one(result)

    def _write_one(self, result: Result) -> None:
        writer, journal = self._attempt.writer, self._attempt.journal
        part_count = len(journal.parts)
        writer.add(result)
        if len(journal.parts) > part_count:
            journal.record()

    def _time_out(self, members: Sequence[Member]) -> None:
        """Times members out by the actor's timeout, or by the run's limit, which ends with the latest deadline."""
        by_clock = self._ends > time.monotonic()
        limit = round(time.monotonic() - self._started_at, 3) if by_clock else self._attempt.manifest.timeout
        for member in members:
            result = self._attempt.result(member.index)
            result.end(states.TIMED_OUT, limit=limit, by_deadline=by_clock and member.deadline_at is not None)
            self._add(result)

    def _end(self, members: Sequence[Member], end: str, *, error: JobError) -> None:
        for member in members:
            result = self._attempt.result(member.index)
            result.end(end, error=error)
            self._add(result)


def _frame(session: SparkSession, rows: list[_Row], _members: Sequence[Member], column: PayloadColumn) -> DataFrame:
    """The DataFrame of the rows of members, in their order."""
    schema = StructType().add("id", StringType()).add("payload", column.kind).add("headers", StringType())
    return session.createDataFrame(rows, schema, verifySchema=False)


def _ordered(spark: SparkSession, results: DataFrame, members: Sequence[Member], column: PayloadColumn) -> DataFrame:
    """The rows in the order of the manifest, with the payload as JSON text and the index of the member."""
    if not isinstance(results, DataFrame):
        raise ResultFormatError(f"the job must return a DataFrame, not {type(results).__name__}")
    missing = [name for name in ("id", "payload") if name not in results.columns]
    if missing:
        raise ResultFormatError(
            f"the job's DataFrame lacks {' and '.join(missing)}; it has {', '.join(results.columns)}"
        )
    kind = results.schema["payload"].dataType
    results = results.withColumn(_PROBLEM, number_problem(F.col("payload"), kind))
    results = results.withColumn("payload", payload_text(F.col("payload"), kind, is_declared=column.is_declared))
    for name, type_name in (("route_next", "array<string>"), ("error", "string"), ("ordinal", "bigint")):
        value = F.col(name) if name in results.columns else F.lit(None)
        results = results.withColumn(name, value.cast(type_name))
    indexes = spark.createDataFrame([(member.id, member.index) for member in members], f"id STRING, {_INDEX} INT")
    results = results.select("id", "payload", "route_next", "error", "ordinal", _PROBLEM)
    indexed = results.join(F.broadcast(indexes), "id", "left")
    # One partition keeps the order; a global sort would evaluate the job's plan twice.
    return indexed.repartition(1).sortWithinPartitions(_INDEX, "ordinal")


def _results(attempt: Attempt, rows: DataFrame, members: Sequence[Member]) -> Iterator[Result]:
    """One result for each member, with or without rows.

    Raises:
        JobResultError: before the first result, if a row has an unknown id.
    """
    groups = groupby(rows.toLocalIterator(), key=lambda row: row[_INDEX])
    index, group = next(groups, _NO_GROUP)
    if index is None and group is not None:  # nulls sort first
        raise JobResultError(
            f"the job returned a row with id {next(group)['id']!r}, which is no envelope of this call; return the ids received"
        )
    for member in members:
        if member.index == index and group is not None:
            yield _result(attempt, index, group)
            index, group = next(groups, _NO_GROUP)
        else:
            yield _result(attempt, member.index, iter(()))


def _result(attempt: Attempt, index: int, rows: Iterator[Row]) -> Result:
    result = attempt.result(index)
    error: JobError | None = None
    for number, row in enumerate(rows):
        if error is None:
            error = _add(result, row, number)
    if error is None:
        result.end(states.DONE)
    else:
        result.end(states.FAILED, error=error, keep_frames=attempt.manifest.streamed)
    return result


def _add(result: Result, row: Row, number: int) -> JobError | None:
    """Add a row as a frame; returns why it is none. `number` is its place among the rows of its envelope."""
    if row["error"] is not None:
        return JobError("RuntimeError", row["error"])
    try:
        payload = _payload(row)
    except (ValueError, strict_json.NotJsonError) as problem:
        return JobError("processing_error", f"the payload of row {number} is not JSON: {problem}")
    changes = "" if row["route_next"] is None else f',"next":{strict_json.encode(list(row["route_next"]))}'
    try:
        result.add(f'{{"payload":{payload}{changes}}}')
    except ResultTooLarge as problem:
        return problem.error
    return None


def _payload(row: Row) -> str:
    """The payload of a row as JSON text.

    Raises:
        ValueError, NotJsonError: it is not JSON.
    """
    if row[_PROBLEM] is not None:
        raise strict_json.NotJsonError(f"{row[_PROBLEM]} has no form in JSON; give null for a missing number")
    return "null" if row["payload"] is None else strict_json.check_text(row["payload"])
