"""Runs one attempt of a job run, from its arguments to its commit (`protocol §10`)."""

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
from asya_spark.calls.errors import JobError, describe
from asya_spark.calls.sessions import Sessions, own_sessions
from asya_spark.calls.warm_up import warm_up
from asya_spark.clock import RunClock
from asya_spark.dataframe_job import run_dataframe
from asya_spark.files import HadoopFiles
from asya_spark.heartbeat import Heartbeat, spark_progress
from asya_spark.journal import Journal
from asya_spark.manifest import read_manifest
from asya_spark.partials import Partials
from asya_spark.payload_job import run_payloads
from asya_spark.python_version import EXPECTED_VARIABLE, WrongPythonError, check_version, running_version
from asya_spark.results import ResultWriter
from asya_spark.secrets import NO_SECRETS, SecretError, Secrets, connector


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the job of the manifest, then commits; errors of single envelopes are results, and the run succeeds."""
    parser = argparse.ArgumentParser(prog="asya_spark")
    parser.add_argument("--manifest", required=True, help="URI of the run's manifest")
    parser.add_argument("--data-uri", required=True, help="URI that references are relative to")
    parser.add_argument("--secret", action="append", default=[], metavar="VARIABLE=NAME", help="a secret for the job")
    parser.add_argument("--region", help="the region of the secrets")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    started_at = time.monotonic()
    os.environ[data.VARIABLE] = options.data_uri
    secrets = Secrets(dict(text.split("=", 1) for text in options.secret), connector(options.region))
    spark = SparkSession.builder.getOrCreate()
    try:
        run(spark, options.manifest, started_at, secrets)
    finally:
        spark.stop()


def run(spark: SparkSession, manifest_uri: str, started_at: float | None = None, secrets: Secrets = NO_SECRETS) -> str:
    """Runs one attempt.

    Args:
        started_at: the start of this process on the monotonic clock; now if None.
        secrets: the secrets of the actor.

    Returns:
        The URI of the attempt's folder.

    Raises:
        ManifestError: if the manifest cannot be read.
    """
    files = HadoopFiles(spark)
    attempt = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
    folder = f"{manifest_uri.rpartition('/')[0]}/attempts/{attempt}/"
    journal = Journal(files, folder, attempt, secrets=secrets)
    try:
        _run(spark, files, journal, manifest_uri, time.monotonic() if started_at is None else started_at)
    except BaseException as error:
        journal.write_error(describe(error))
        raise
    return folder


def _run(spark: SparkSession, files: HadoopFiles, journal: Journal, manifest_uri: str, started_at: float) -> None:
    manifest = read_manifest(files, manifest_uri)
    journal.run_id = manifest.run_id
    journal.record(stage="starting")
    print(
        f"asya_spark: {manifest.run_id}: {len(manifest.members)} envelopes for {manifest.job}, "
        f"attempt {journal.attempt}, Python {sys.version}",
        flush=True,
    )
    try:
        check_version(os.environ.get(EXPECTED_VARIABLE))
        journal.secrets.set_variables()
    except (WrongPythonError, SecretError) as obstacle:
        # No envelope is the cause. The commit ends them all with this error, and the run is not halved.
        print(f"asya_spark: {obstacle}", flush=True)
        journal.commit(describe(obstacle), python=running_version())
        return
    partials = Partials(files, journal.folder)
    # Members that were in a run that died may be beside the one that killed it again.
    is_careful = any(member.is_at_risk for member in manifest.members)
    writer = ResultWriter(files, journal.folder, journal, each_alone=is_careful)
    clock = RunClock(manifest.time_limit, started_at)
    attempt = Attempt(Sessions(spark), manifest, files, journal, writer, partials, clock)

    def describe_run() -> dict[str, Any]:
        return {"at_work": journal.at_work, "done": writer.done, **spark_progress(spark.sparkContext)}

    with Heartbeat(files, journal.folder, partials, describe_run), own_sessions():
        warm_up(spark)
        error, unreached = _run_job(attempt)
    journal.commit(error, unreached, python=running_version())


def _run_job(attempt: Attempt) -> tuple[JobError | None, int | None]:
    """Runs the job in its shape; returns the error of the whole job, and the first member without time."""
    try:
        job: Any = load(attempt.manifest.job)
    except Exception as error:  # noqa: BLE001 - a job that cannot be loaded fails every envelope with this error
        return describe(error), None
    if attempt.manifest.shape == "dataframe":
        run_dataframe(job, attempt)
        return None, None
    return None, run_payloads(job, attempt)
