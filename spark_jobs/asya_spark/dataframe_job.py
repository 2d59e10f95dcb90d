"""`job(spark, envelopes: DataFrame) -> DataFrame`: one call for all envelopes of a run (`protocol §10`).

In: `id`, `payload` (JSON text, or the actor's declared schema), `headers` (JSON text). Out: `id`, `payload` (JSON text or any
Spark type), and optionally `route_next`, `error`, `ordinal`. No row = no frame; several = frames in order of `ordinal`.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from asya_spark import strict_json
from asya_spark.attempt import Attempt
from asya_spark.context import Context, at_work
from asya_spark.errors import JobError, describe
from asya_spark.files import Files
from asya_spark.manifest import Manifest, Member, load_envelope
from asya_spark.results import Result
from asya_spark.time_limit import Ending, run_within

DataFrameJob = Callable[[SparkSession, DataFrame], DataFrame]

_INDEX = "__asya_index"


# So many calls may fail with an error before the rest of the envelopes fails with the last one: two bad ones among 10,000 are
# found apart within that, and a job that fails for all of them comes to an end.
FAILED_CALLS = 32


class JobResultError(ValueError):
    """What the job returned is no DataFrame of results; says what it should be."""


class WrongFormError(JobResultError):
    """It would be so for any envelopes."""


def run_dataframe(job: DataFrameJob, attempt: Attempt) -> None:
    """Call the job and write what it gives for each member.

    If it raises, it is called again with the first half of the envelopes and with the second, and so on: one bad envelope
    fails alone, with its own error. All calls together have the actor's timeout.
    """
    attempt.journal.note(None)
    _Calls(job, attempt).settle(attempt.manifest.members)
    attempt.writer.flush()
    attempt.journal.note(None)


class _Calls:
    """The calls of one job in one run."""

    def __init__(self, job: DataFrameJob, attempt: Attempt) -> None:
        self._job = job
        self._attempt = attempt
        self._began = time.monotonic()
        self._ends = self._began + attempt.manifest.timeout
        self._failed = 0

    def settle(self, members: Sequence[Member]) -> None:
        """Write a result for each of these members, in their order."""
        ending = self._call(members)
        if ending.timed_out:
            self._time_out(members)
            return
        error = ending.error or self._write(ending.value, members)
        if error is None:
            return
        self._failed += 1
        if len(members) == 1 or isinstance(error, WrongFormError) or self._failed >= FAILED_CALLS:
            self._end(members, "failed" if isinstance(error, Exception) else "crashed", error=describe(error))
            return
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"asya_spark: {len(members)} envelopes together failed ({said}); trying them by halves", flush=True)
        middle = (len(members) + 1) // 2
        self.settle(members[:middle])
        self.settle(members[middle:])

    def _call(self, members: Sequence[Member]) -> Ending[DataFrame]:
        attempt = self._attempt
        spark, manifest = attempt.spark, attempt.manifest
        envelopes = _envelopes(spark, manifest, members, attempt.files)
        current = Context(
            id=manifest.run_id,
            parent_id="",
            headers={},
            actor=manifest.actor,
            position=0,
            attempt=1,
            deadline_at=None,
            scratch=attempt.scratch,
            _say=lambda message: attempt.flies.say(None, message),
        )

        def work() -> DataFrame:
            with at_work(current):
                results = _ordered(spark, self._job(spark, envelopes), members).persist(StorageLevel.DISK_ONLY)
                results.count()  # here and not later, so that the user's transformations run under their time limit, and once
                return results

        left = min(self._ends - time.monotonic(), attempt.clock.left())
        return run_within(left, work, spark.sparkContext, attempt.name) if left > 0 else Ending(timed_out=True)

    def _write(self, results: DataFrame | None, members: Sequence[Member]) -> JobResultError | None:
        """Write what a call gave; or what is wrong with it, before anything is written."""
        if results is None:
            return WrongFormError("the job returned nothing")
        try:
            for result in _results(results, members, streamed=self._attempt.manifest.streamed):
                self._add(result)
        except JobResultError as error:
            return error
        finally:
            results.unpersist()
        return None

    def _add(self, result: Result) -> None:
        writer, journal = self._attempt.writer, self._attempt.journal
        known = len(journal.parts)
        writer.add(result)
        if len(journal.parts) > known:
            journal.note(None)

    def _time_out(self, members: Sequence[Member]) -> None:
        """The actor's timeout is over; or, before it, the run's time is, which ends with the latest deadline of its members."""
        by_clock = self._ends > time.monotonic()
        limit = round(time.monotonic() - self._began, 3) if by_clock else self._attempt.manifest.timeout
        for member in members:
            result = Result(member.index)
            result.end("timed_out", limit=limit, by_deadline=by_clock and member.deadline_at is not None)
            self._add(result)

    def _end(self, members: Sequence[Member], how: str, *, error: JobError) -> None:
        for member in members:
            result = Result(member.index)
            result.end(how, error=error)
            self._add(result)


def _envelopes(spark: SparkSession, manifest: Manifest, members: Sequence[Member], files: Files) -> DataFrame:
    rows = []
    for member in members:
        envelope = load_envelope(files, manifest, member)
        rows.append((envelope.id, json.dumps(envelope.payload), json.dumps(envelope.headers)))
    envelopes = spark.createDataFrame(rows, "id STRING, payload STRING, headers STRING")
    if manifest.payload_schema:
        envelopes = envelopes.withColumn(
            "payload", F.from_json("payload", manifest.payload_schema, {"mode": "FAILFAST"})
        )
    return envelopes


def _ordered(spark: SparkSession, results: DataFrame, members: Sequence[Member]) -> DataFrame:
    """The rows in the order of the manifest: payload as JSON text, and each with its member's place."""
    if not isinstance(results, DataFrame):
        raise WrongFormError(f"the job must return a DataFrame, not {type(results).__name__}")
    missing = [name for name in ("id", "payload") if name not in results.columns]
    if missing:
        raise WrongFormError(f"the job's DataFrame lacks {' and '.join(missing)}; it has {', '.join(results.columns)}")
    if not isinstance(results.schema["payload"].dataType, StringType):
        results = results.withColumn(
            "payload", F.to_json(F.struct(F.col("payload").alias("v")), {"ignoreNullFields": "false"})
        )
        results = results.withColumn("payload", F.expr("substring(payload, 6, length(payload) - 6)"))
    for name, kind in (("route_next", "array<string>"), ("error", "string"), ("ordinal", "bigint")):
        column = F.col(name) if name in results.columns else F.lit(None)
        results = results.withColumn(name, column.cast(kind))
    places = spark.createDataFrame([(member.id, member.index) for member in members], f"id STRING, {_INDEX} INT")
    placed = results.select("id", "payload", "route_next", "error", "ordinal").join(F.broadcast(places), "id", "left")
    # One partition keeps the order without evaluating the job's plan twice, as sorting by range would.
    return placed.repartition(1).sortWithinPartitions(_INDEX, "ordinal")


def _results(rows: DataFrame, members: Sequence[Member], *, streamed: bool) -> Iterator[Result]:
    """One result for every member, whether or not it has rows.

    Raises:
        JobResultError: before the first.
    """
    done = members[0].index
    for index, some in groupby(rows.toLocalIterator(), key=lambda row: row[_INDEX]):
        if index is None:  # these come first
            raise JobResultError(
                f"the job returned a row with id {next(some)['id']!r}, which is none of this run's envelopes"
            )
        for without_rows in range(done, index):
            yield _result(without_rows, iter(()), streamed=streamed)
        yield _result(index, some, streamed=streamed)  # noqa: B031 - each group is used once
        done = index + 1
    for without_rows in range(done, members[-1].index + 1):
        yield _result(without_rows, iter(()), streamed=streamed)


def _result(index: int, rows: Iterator[Row], *, streamed: bool) -> Result:
    result = Result(index)
    error: JobError | None = None
    for row in rows:
        if error is None:
            error = _add(result, row)
    if error is None:
        result.end("done")
    else:
        result.end("failed", error=error, keep_frames=streamed)
    return result


def _add(result: Result, row: Row) -> JobError | None:
    if row["error"] is not None:
        return JobError("RuntimeError", row["error"])
    try:
        payload = "null" if row["payload"] is None else strict_json.check_text(row["payload"])
    except ValueError as problem:
        return JobError("processing_error", f"the payload of a row is no JSON: {problem}")
    changes = "" if row["route_next"] is None else f',"next":{strict_json.encode(list(row["route_next"]))}'
    result.add(f'{{"payload":{payload}{changes}}}')
    return None
