"""One start of a job run's driver, from its arguments to its commit (`protocol §10`)."""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from asya.runtime.load import load
from asya_spark import data
from asya_spark.attempt import Attempt
from asya_spark.dataframe_shape import run_dataframe
from asya_spark.errors import JobError, describe
from asya_spark.files import HadoopFiles
from asya_spark.journal import Heartbeat, Journal, spark_progress
from asya_spark.manifest import read_manifest
from asya_spark.payload_shape import run_payloads
from asya_spark.results import ResultWriter


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the manifest says, then commit. What single envelopes die of is in their results; the run has succeeded."""
    parser = argparse.ArgumentParser(prog="asya_spark")
    parser.add_argument("--manifest", required=True, help="URI of the run's manifest")
    parser.add_argument("--data-uri", required=True, help="URI that references are relative to")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    os.environ[data.VARIABLE] = options.data_uri
    spark = SparkSession.builder.getOrCreate()
    try:
        run(spark, options.manifest)
    finally:
        spark.stop()


def run(spark: SparkSession, manifest_uri: str) -> str:
    """One attempt at a run.

    Returns:
        The URI of the attempt's folder.

    Raises:
        ManifestError: if there is nothing to do by.
    """
    files = HadoopFiles(spark)
    manifest = read_manifest(files, manifest_uri)
    attempt = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
    folder = f"{manifest.folder}attempts/{attempt}/"
    journal = Journal(files, folder, manifest.run_id, attempt)
    print(
        f"asya_spark: {manifest.run_id}: {len(manifest.members)} envelopes for {manifest.job}, attempt {attempt}",
        flush=True,
    )
    with Heartbeat(files, folder, lambda: {"at_work": journal.at_work, **spark_progress(spark.sparkContext)}):
        error = _evaluated(Attempt(spark, manifest, files, journal, ResultWriter(files, folder, journal)))
    journal.commit(error)
    return folder


def _evaluated(attempt: Attempt) -> JobError | None:
    """Run the job in its shape; the error that it ended with as a whole, if it did."""
    try:
        job: Any = load(attempt.manifest.job)
    except Exception as error:  # noqa: BLE001 - a job that cannot be loaded fails every envelope, and says why
        return describe(error)
    if attempt.manifest.shape == "dataframe":
        return run_dataframe(job, attempt)
    run_payloads(job, attempt)
    return None
