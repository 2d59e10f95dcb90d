"""Runs a job of a heavy actor in this process, for the benchmarks."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import SparkSession

from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Manifest, Member, manifest_key
from asya_local.tools import find_java
from asya_spark.main import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def session() -> SparkSession:
    """Two cores, whatever the machine has; FAIR as with `parallel`."""
    os.environ["JAVA_HOME"] = find_java()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run_job(
    spark: SparkSession, job: str, payloads: Sequence[Mapping[str, Any]], folder: Path, *, parallel: int = 1
) -> float:
    """Return the seconds of a run of `job` with these payloads, from its manifest to its commit."""
    manifest = Manifest(
        run_id="asya.bench.heavy.0000000001",
        namespace="bench",
        actor="heavy",
        number=1,
        formed_at="2026-01-01T00:00:00Z",
        job=job,
        shape="payload",
        timeout=600.0,
        time_limit=60,
        client_token="t",
        members=tuple(_member(f"e{index}", payload) for index, payload in enumerate(payloads)),
        parallel=parallel,
    )
    path = folder / manifest_key("heavy", 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(encode_manifest(manifest))
    began = perf_counter()
    run(spark, f"file://{path}")
    return perf_counter() - began


def _member(name: str, payload: Mapping[str, Any]) -> Member:
    envelope = {"id": name, "route": {"prev": [], "curr": "heavy", "next": []}, "payload": payload}
    return Member(
        id=name,
        position=0,
        attempt=1,
        admitted_at="2026-01-01T00:00:00Z",
        envelope=msgspec.Raw(msgspec.json.encode(envelope)),
    )
