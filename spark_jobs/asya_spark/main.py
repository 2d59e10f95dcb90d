"""One start of a job run's driver, from its arguments to its commit (`protocol §10`)."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from asya.runtime.load import load
from asya_spark import data
from asya_spark.attempt import Attempt
from asya_spark.clock import RunClock
from asya_spark.dataframe_job import run_dataframe
from asya_spark.errors import JobError, describe
from asya_spark.files import HadoopFiles
from asya_spark.heartbeat import Heartbeat, spark_progress
from asya_spark.journal import Journal
from asya_spark.manifest import read_manifest
from asya_spark.partials import Partials
from asya_spark.payload_job import run_payloads
from asya_spark.results import ResultWriter


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the manifest says, then commit. What single envelopes die of is in their results; the run has succeeded."""
    parser = argparse.ArgumentParser(prog="asya_spark")
    parser.add_argument("--manifest", required=True, help="URI of the run's manifest")
    parser.add_argument("--data-uri", required=True, help="URI that references are relative to")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    began = time.monotonic()
    os.environ[data.VARIABLE] = options.data_uri
    spark = SparkSession.builder.getOrCreate()
    try:
        run(spark, options.manifest, began)
    finally:
        spark.stop()


def run(spark: SparkSession, manifest_uri: str, began: float | None = None) -> str:
    """One attempt at a run.

    Args:
        began: when this process did, on the monotonic clock.

    Returns:
        The URI of the attempt's folder.

    Raises:
        ManifestError: if there is nothing to do by.
    """
    files = HadoopFiles(spark)
    attempt = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
    folder = f"{manifest_uri.rpartition('/')[0]}/attempts/{attempt}/"
    journal = Journal(files, folder, attempt)
    try:
        _run(spark, files, journal, manifest_uri, time.monotonic() if began is None else began)
    except BaseException as error:
        journal.last_words(describe(error))
        raise
    return folder


def _run(spark: SparkSession, files: HadoopFiles, journal: Journal, manifest_uri: str, began: float) -> None:
    manifest = read_manifest(files, manifest_uri)
    journal.run_id = manifest.run_id
    journal.note(None, stage="starting")
    print(
        f"asya_spark: {manifest.run_id}: {len(manifest.members)} envelopes for {manifest.job}, "
        f"attempt {journal.attempt}",
        flush=True,
    )
    flies, writer = Partials(files, journal.folder), ResultWriter(files, journal.folder, journal)
    attempt = Attempt(spark, manifest, files, journal, writer, flies, RunClock(manifest.time_limit, began))

    def describe_run() -> dict[str, Any]:
        return {"at_work": journal.at_work, "done": writer.done, **spark_progress(spark.sparkContext)}

    with Heartbeat(files, journal.folder, flies, describe_run):
        error, unreached = _evaluated(attempt)
    journal.commit(error, unreached)


def _evaluated(attempt: Attempt) -> tuple[JobError | None, int | None]:
    """Run the job in its shape: the error that keeps it from working at all, the first member there was no time for."""
    try:
        job: Any = load(attempt.manifest.job)
    except Exception as error:  # noqa: BLE001 - a job that cannot be loaded fails every envelope, and says why
        return describe(error), None
    if attempt.manifest.shape == "dataframe":
        run_dataframe(job, attempt)
        return None, None
    return None, run_payloads(job, attempt)
