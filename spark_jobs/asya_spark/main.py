"""Runs the attempts of a job run, from its arguments to the commits (`protocol §10`)."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from asya.contracts.signature import SignatureError
from asya.runtime.load import load
from asya_spark import clock as machine_clock
from asya_spark import data
from asya_spark.attempt import Attempt, ResultWriter
from asya_spark.calls.errors import JobError, describe
from asya_spark.calls.process_state import ProcessState
from asya_spark.calls.sessions import Sessions, is_running, own_sessions, warm_up
from asya_spark.calls.time_limit import is_at_work
from asya_spark.clock import RunClock
from asya_spark.columns import payload_column
from asya_spark.dataframe_job import run_dataframe
from asya_spark.files import Files, HadoopFiles
from asya_spark.heartbeat import Heartbeat, StageChanges, spark_progress
from asya_spark.journal import Journal, Partials
from asya_spark.manifest import read_manifest
from asya_spark.payload_job import run_payloads
from asya_spark.python_version import EXPECTED_VARIABLE, WrongPythonError, check_version, running_version
from asya_spark.resident import Batches, Linger, resident_files
from asya_spark.secrets import NO_SECRETS, SecretError, Secrets, connector


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the job of the manifest, then commits; errors of single envelopes are results, and the run succeeds."""
    parser = argparse.ArgumentParser(prog="asya_spark")
    parser.add_argument("--manifest", required=True, help="URI of the run's manifest")
    parser.add_argument("--data-uri", required=True, help="URI that references are relative to")
    parser.add_argument("--secret", action="append", default=[], metavar="VARIABLE=NAME", help="a secret for the job")
    parser.add_argument("--region", help="the region of the secrets")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds that the job run waits for a further batch")
    parser.add_argument("--limit", type=float, default=0.0, help="minutes that a job run that lingers may take")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    started_at = time.monotonic()
    os.environ[data.VARIABLE] = options.data_uri
    secrets = Secrets(dict(text.split("=", 1) for text in options.secret), connector(options.region))
    linger = Linger(options.linger, options.limit, options.region) if options.linger else None
    spark = SparkSession.builder.getOrCreate()
    try:
        run(spark, options.manifest, started_at, secrets, linger)
    finally:
        spark.stop()


def run(
    spark: SparkSession,
    manifest_uri: str,
    started_at: float | None = None,
    secrets: Secrets = NO_SECRETS,
    linger: Linger | None = None,
) -> str:
    """Runs one attempt, and those of further batches if the job run lingers.

    Args:
        started_at: the start of this process on the monotonic clock; now if None.
        secrets: the secrets of the actor.
        linger: how long the job run waits for a further batch; None if it ends.

    Returns:
        The URI of the first attempt's folder.

    Raises:
        ManifestError: if a manifest cannot be read.
    """
    started_at = time.monotonic() if started_at is None else started_at
    if linger is None:
        return _Batch(spark, HadoopFiles(spark), secrets).run(manifest_uri, started_at).folder
    files, clock = resident_files(spark, manifest_uri, linger.region), RunClock(linger.limit, started_at)
    folder = f"{manifest_uri.rpartition('/')[0]}/"
    batches = Batches(files, folder, linger, clock, lambda: is_running(spark))
    batch = _Batch(spark, files, secrets, clock, batches.announce)
    first = ended = batch.run(manifest_uri, started_at)
    while ended.goes_on and (uri := batches.wait(ended.timeout)) is not None:
        ended = batch.run(uri, time.monotonic())
    return first.folder


@dataclass(frozen=True)
class _Ended:
    """An attempt that has committed.

    Attributes:
        folder: its URI.
        timeout: seconds that an envelope may take.
        goes_on: whether the job run may have a further batch; not after an error that further ones would have too.
    """

    folder: str
    timeout: float
    goes_on: bool


class _Batch:
    """Runs the attempts of a job run.

    Args:
        clock: the time of the job run, if it lingers.
        announce: called before the commit of an attempt after which the job run goes on.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        secrets: Secrets,
        clock: RunClock | None = None,
        announce: Callable[[], None] | None = None,
    ) -> None:
        self._spark = spark
        self._files = files
        self._secrets = secrets
        self._clock = clock
        self._announce = announce
        self._is_prepared = False

    def run(self, manifest_uri: str, started_at: float) -> _Ended:
        """Runs one attempt, to its commit.

        Raises:
            ManifestError: if the manifest cannot be read.
        """
        attempt = f"{machine_clock.now():%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
        folder = f"{manifest_uri.rpartition('/')[0]}/attempts/{attempt}/"
        journal = Journal(self._files, folder, attempt, secrets=self._secrets)
        try:
            return self._run(journal, manifest_uri, started_at)
        except BaseException as error:
            journal.write_error(describe(error))
            raise

    def _run(self, journal: Journal, manifest_uri: str, started_at: float) -> _Ended:
        spark, files = self._spark, self._files
        manifest = read_manifest(files, manifest_uri)
        journal.run_id = manifest.run_id
        journal.record(stage="starting")
        print(
            f"asya_spark: {manifest.run_id}: {len(manifest.members)} envelopes for {manifest.job}, "
            f"attempt {journal.attempt}, Python {sys.version}",
            flush=True,
        )
        try:
            self._prepare()
        except (WrongPythonError, SecretError) as obstacle:
            # No envelope is the cause. The commit ends them all with this error, and the run is not halved.
            print(f"asya_spark: {obstacle}", flush=True)
            journal.commit(describe(obstacle), python=running_version())
            return _Ended(journal.folder, manifest.timeout, goes_on=False)
        partials = Partials(files, journal.folder)
        # Members that were in a run that died may be beside the one that killed it again.
        is_careful = any(member.is_at_risk for member in manifest.members)
        writer = ResultWriter(files, journal.folder, journal, each_alone=is_careful)
        clock = RunClock(manifest.time_limit, started_at, self._clock)
        attempt = Attempt(Sessions(spark, ProcessState), manifest, files, journal, writer, partials, clock)

        changes = StageChanges()

        def describe_run() -> dict[str, Any]:
            return {"at_work": journal.at_work, "done": writer.done, **spark_progress(spark.sparkContext, changes)}

        with Heartbeat(files, journal.folder, partials, describe_run), own_sessions():
            warm_up(spark)
            error, unreached = _run_job(attempt)
        # The envelopes of a DataFrame have their stages in common; those of a payload job have their own.
        work = attempt.sessions.work_of(attempt.name) if manifest.shape == "dataframe" else None
        # Code that ignores its time limit would be at work beside the next batch.
        is_done = error is None and unreached is None
        goes_on = self._announce is not None and is_done and not is_at_work(attempt.name)
        if self._announce is not None and goes_on:
            self._announce()
        journal.commit(error, unreached, python=running_version(), work=work)
        return _Ended(journal.folder, manifest.timeout, goes_on)

    def _prepare(self) -> None:
        """Checks the Python and reads the secrets, once for all attempts of this process.

        Raises:
            WrongPythonError: the code of jobs is built for another Python.
            SecretError: a secret cannot be read.
        """
        if not self._is_prepared:
            check_version(os.environ.get(EXPECTED_VARIABLE))
            self._secrets.set_variables()
            self._is_prepared = True


def _run_job(attempt: Attempt) -> tuple[JobError | None, int | None]:
    """Runs the job in its shape; returns the error of the whole job, and the first member without time."""
    is_dataframe = attempt.manifest.shape == "dataframe"
    try:
        job: Any = load(attempt.manifest.job)
        column = payload_column(attempt.manifest.payload_schema if is_dataframe else None)
    except Exception as error:  # noqa: BLE001 - a job that cannot be loaded fails every envelope with this error
        return describe(error), None
    if is_dataframe:
        run_dataframe(job, attempt, column)
        return None, None
    try:
        return None, run_payloads(job, attempt)
    except SignatureError as error:
        return describe(SignatureError(f"job {attempt.manifest.job!r} {error}")), None
