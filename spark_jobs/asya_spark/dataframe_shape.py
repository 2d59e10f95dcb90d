"""`job(spark, envelopes: DataFrame) -> DataFrame`: one call for all envelopes of a run (`protocol §10`).

In: `id`, `payload` (JSON text, or the actor's declared schema), `headers` (JSON text). Out: `id`, `payload` (JSON text or any
Spark type), and optionally `route_next`, `error`, `ordinal`. No row = no frame; several = frames in order of `ordinal`.
"""

import json
from collections.abc import Callable, Iterator
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
from asya_spark.manifest import Manifest, load_envelope
from asya_spark.results import Result
from asya_spark.timed import run_within

DataFrameJob = Callable[[SparkSession, DataFrame], DataFrame]

_INDEX = "__asya_index"


class JobResultError(ValueError):
    """What the job returned is no DataFrame of results; says what it should be."""


def run_dataframe(job: DataFrameJob, attempt: Attempt) -> JobError | None:
    """Call the job once and write what it gives for each member.

    Returns:
        The error that the job as a whole ended with; the members then have no results.
    """
    spark, manifest, writer = attempt.spark, attempt.manifest, attempt.writer
    envelopes = _envelopes(spark, manifest, attempt.files)
    current = Context(
        id=manifest.run_id,
        parent_id="",
        headers={},
        actor=manifest.actor,
        position=0,
        attempt=1,
        deadline_at=None,
        scratch=attempt.scratch,
    )

    def work() -> DataFrame:
        with at_work(current):
            results = _ordered(spark, job(spark, envelopes), manifest).persist(StorageLevel.DISK_ONLY)
            results.count()  # here and not later, so that the user's transformations run under their time limit, and once
            return results

    ending = run_within(manifest.timeout, work, spark.sparkContext, attempt.name)
    if ending.timed_out:
        for member in manifest.members:
            result = Result(member.index)
            result.end("timed_out", limit=manifest.timeout)
            writer.add(result)
        writer.flush()
        return None
    if ending.error is not None or ending.value is None:
        return describe(ending.error or JobResultError("the job returned nothing"))
    try:
        for result in _results(ending.value, manifest):
            writer.add(result)
    except JobResultError as error:
        return describe(error)
    writer.flush()
    return None


def _envelopes(spark: SparkSession, manifest: Manifest, files: Files) -> DataFrame:
    rows = []
    for member in manifest.members:
        envelope = load_envelope(files, manifest, member)
        rows.append((envelope.id, json.dumps(envelope.payload), json.dumps(envelope.headers)))
    envelopes = spark.createDataFrame(rows, "id STRING, payload STRING, headers STRING")
    if manifest.payload_schema:
        envelopes = envelopes.withColumn(
            "payload", F.from_json("payload", manifest.payload_schema, {"mode": "FAILFAST"})
        )
    return envelopes


def _ordered(spark: SparkSession, results: DataFrame, manifest: Manifest) -> DataFrame:
    """The rows in the order of the manifest: payload as JSON text, and each with its member's place."""
    if not isinstance(results, DataFrame):
        raise JobResultError(f"the job must return a DataFrame, not {type(results).__name__}")
    missing = [name for name in ("id", "payload") if name not in results.columns]
    if missing:
        raise JobResultError(f"the job's DataFrame lacks {' and '.join(missing)}; it has {', '.join(results.columns)}")
    if not isinstance(results.schema["payload"].dataType, StringType):
        results = results.withColumn(
            "payload", F.to_json(F.struct(F.col("payload").alias("v")), {"ignoreNullFields": "false"})
        )
        results = results.withColumn("payload", F.expr("substring(payload, 6, length(payload) - 6)"))
    for name, kind in (("route_next", "array<string>"), ("error", "string"), ("ordinal", "bigint")):
        column = F.col(name) if name in results.columns else F.lit(None)
        results = results.withColumn(name, column.cast(kind))
    places = spark.createDataFrame(
        [(member.id, member.index) for member in manifest.members], f"id STRING, {_INDEX} INT"
    )
    placed = results.select("id", "payload", "route_next", "error", "ordinal").join(F.broadcast(places), "id", "left")
    # One partition keeps the order without evaluating the job's plan twice, as sorting by range would.
    return placed.repartition(1).sortWithinPartitions(_INDEX, "ordinal")


def _results(rows: DataFrame, manifest: Manifest) -> Iterator[Result]:
    """One result for every member, whether or not it has rows."""
    done = 0
    for index, some in groupby(rows.toLocalIterator(), key=lambda row: row[_INDEX]):
        if index is None:
            raise JobResultError(
                f"the job returned a row with id {next(some)['id']!r}, which is none of this run's envelopes"
            )
        for without_rows in range(done, index):
            yield _result(without_rows, iter(()), manifest)
        yield _result(index, some, manifest)  # noqa: B031 - each group is used once
        done = index + 1
    for without_rows in range(done, len(manifest.members)):
        yield _result(without_rows, iter(()), manifest)


def _result(index: int, rows: Iterator[Row], manifest: Manifest) -> Result:
    result = Result(index)
    error: JobError | None = None
    for row in rows:
        if error is None:
            error = _add(result, row)
    if error is None:
        result.end("done")
    else:
        result.end("failed", error=error, keep_frames=manifest.streamed)
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
