"""What a Spark on this machine takes of the configuration of a run: each setting, or a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.mesh_table import Actor, SparkJob, WorkerSize
from asya_local.emr.drivers.private_settings import submit_options
from asya_local.emr.local_spark import FILE_SETTINGS, Launch, launch_of, local_conf, reason_against, unheeded_notes

LAUNCHED = (
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.driver.extraClassPath",
    "spark.jars.packages",
)
UNHEEDED = (
    "spark.executor.memoryOverhead",
    "spark.dynamicAllocation.x",
    "spark.emr-serverless.driver.disk",
    "spark.ui.enabled",
)
HEEDED = (
    *("spark.sql.ansi.enabled", "spark.sql.shuffle.partitions", "spark.hadoop.fs.s3a.x", "spark.task.maxFailures"),
    *("spark.executorEnv.A", "spark.serializer", "spark.executor.heartbeatInterval", "spark.my.own"),
)


@given(st.dictionaries(st.sampled_from([*LAUNCHED, *UNHEEDED, *HEEDED, *FILE_SETTINGS]), st.just("1")))
def test_each_setting_is_heeded_or_has_a_reason(conf: dict[str, str]) -> None:
    launch = launch_of(conf)
    launched = {*dict(launch.conf)}
    launched |= {"spark.driver.memory"} if launch.memory == "1" else set()
    launched |= {"spark.driver.extraJavaOptions"} if launch.java_options == "1" else set()
    refused = {name for name in conf if reason_against(name) is not None}
    files = conf.keys() & set(FILE_SETTINGS)
    parts = (launched, refused, files, local_conf(conf).keys())
    assert sorted(name for part in parts for name in part) == sorted(conf), "each in one of them"


def heavy(memory_mb: int = 2048, **conf: str) -> dict[str, Actor]:
    job = SparkJob(job="jobs.work", driver=WorkerSize(memory_mb=memory_mb), conf=conf)
    return {"count": Actor(kind="spark", spark=job), "light": Actor(kind="handler")}


def test_a_note_names_the_actor_the_settings_and_the_reason() -> None:
    actors = heavy(
        **{"spark.ui.enabled": "true", "spark.executor.memoryOverhead": "1g", "spark.sql.ansi.enabled": "false"}
    )
    assert list(unheeded_notes(actors, 4096)) == [
        "count: Spark does not heed spark.ui.enabled on this machine: the driver stays closed to other users of this machine",
        "count: Spark does not heed spark.executor.memoryOverhead on this machine: driver and executors are one process here, "
        "with the driver's heap",
    ]


def test_a_note_says_that_the_machine_is_too_small() -> None:
    assert list(unheeded_notes(heavy(8192), 4096)) == [
        "count: the driver may use 8192 MB, and this machine has 4096 MB of memory"
    ]


@pytest.mark.parametrize(("given_options", "own"), [("", True), ("-Xss8m", True), ("-XX:+UseG1GC -Da=b", False)])
def test_a_jvm_has_one_collector(given_options: str, own: bool, tmp_path: object) -> None:
    options = submit_options(Launch(java_options=given_options), "local[2]", "-XX:+UseSerialGC", tmp_path)  # type: ignore[arg-type]
    assert ("UseSerialGC" in options) is own
    assert given_options in options
