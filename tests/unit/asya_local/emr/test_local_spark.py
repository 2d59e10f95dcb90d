"""What a Spark on this machine takes of the configuration of a run: each setting, or a reason."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.protocol.mesh_table import Actor, JobSize, SparkJob, WorkerSize
from asya_infra.mesh_file import load_mesh
from asya_local.emr.drivers.private_settings import submit_options
from asya_local.emr.local_spark import (
    FILE_SETTINGS,
    OF_THE_KIT,
    Launch,
    data_files,
    files_here,
    launch_of,
    local_conf,
    local_path,
    reason_against,
    unheeded_notes,
)
from tests.paths import PROJECT

LAUNCHED = (
    "spark.driver.memory",
    "spark.executor.memory",
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
    launch = launch_of(conf, 4096)
    launched = {*dict(launch.conf)}
    launched |= {"spark.driver.memory"} if launch.memory == "1" else set()
    launched |= {"spark.driver.extraJavaOptions"} if launch.java_options == "1" else set()
    refused = {name for name in conf if reason_against(name) is not None}
    files = conf.keys() & set(FILE_SETTINGS)
    memory = conf.keys() & {"spark.executor.memory"}
    parts = (memory, launched, refused, files, local_conf(conf).keys())
    assert sorted(name for part in parts for name in part) == sorted(conf), "each in one of them"


def heavy(memory_mb: int = 2048, **conf: str) -> dict[str, Actor]:
    job = SparkJob(job="jobs.work", driver=WorkerSize(memory_mb=memory_mb), conf=conf)
    return {"count": Actor(kind="spark", spark=job), "light": Actor(kind="handler")}


def test_a_note_names_the_actor_the_settings_and_the_reason() -> None:
    actors = heavy(
        **{"spark.ui.enabled": "true", "spark.executor.memoryOverhead": "1g", "spark.sql.ansi.enabled": "false"}
    )
    assert list(unheeded_notes(actors, 8192)) == [
        "count: Spark does not heed spark.ui.enabled on this machine: the driver stays closed to other users of this machine",
        "count: Spark does not heed spark.executor.memoryOverhead on this machine: driver and executors are one process here, "
        "with one heap",
    ]


def test_a_note_says_that_the_machine_is_too_small() -> None:
    assert list(unheeded_notes(heavy(8192), 4096)) == [
        "count: driver and executor may use 8192 and 2048 MB of heap, and have 4096 MB together on this machine with 4096 MB"
    ]
    assert not list(unheeded_notes(heavy(2048), 8192))


@pytest.mark.parametrize(
    ("driver", "executor", "machine", "heap"),
    [
        ("2g", "4g", 65_536, "6144m"),
        ("2g", "4g", 8192, "4096m"),
        ("6g", "4g", 8192, "6144m"),
        ("16g", "4g", 8192, "8192m"),
        ("2g", None, 8192, "2048m"),
        (None, "1g", 8192, "3072m"),
    ],
)
def test_the_heap_has_the_driver_and_an_executor_within_the_machine(
    driver: str | None, executor: str | None, machine: int, heap: str, tmp_path: Path
) -> None:
    named = {"spark.driver.memory": driver, "spark.executor.memory": executor}
    launch = launch_of({name: value for name, value in named.items() if value is not None}, machine)
    assert (launch.memory, launch.heap) == (driver or "2048m", heap)
    options = submit_options(launch, "local[2]", "", tmp_path)
    assert f"--driver-memory {launch.memory} " in options
    assert f"-XX:MaxHeapSize={heap}" in options


def test_notes_name_the_size() -> None:
    job = SparkJob(
        job="jobs.work",
        sizes=(
            JobSize(name="small", conf={"spark.ui.enabled": "true"}),
            JobSize(name="large", driver=WorkerSize(memory_mb=32768), conf={"spark.ui.enabled": "true"}),
        ),
    )
    assert list(unheeded_notes({"count": Actor(kind="spark", spark=job)}, 16384)) == [
        "count: Spark does not heed spark.ui.enabled on this machine: the driver stays closed to other users of this machine",
        "count, size large: driver and executor may use 32768 and 2048 MB of heap, and have 16384 MB together on this machine with "
        "16384 MB",
    ]


@pytest.mark.parametrize(("given_options", "own"), [("", True), ("-Xss8m", True), ("-XX:+UseG1GC -Da=b", False)])
def test_a_jvm_has_one_collector(given_options: str, own: bool, tmp_path: object) -> None:
    options = submit_options(Launch(java_options=given_options), "local[2]", "-XX:+UseSerialGC", tmp_path)  # type: ignore[arg-type]
    assert ("UseSerialGC" in options) is own
    assert given_options in options


OWN = "s3://asya-shop-123456789012-eu-west-1/data/"


@pytest.mark.parametrize(
    ("storage", "address", "found"),
    [
        ("", f"{OWN}jars/a%20b.jar", True),
        ("", f"{OWN}jars/other.jar", False),
        ("", OWN.replace("/data/", "/results/") + "jars/a%20b.jar", False),
        ("", "s3://asya-stop-123456789012-eu-west-1/data/jars/a%20b.jar", False),
        ("storage: {data_bucket: lake}", "s3a://lake/jars/a%20b.jar", True),
        ("storage: {data_bucket: lake}", f"{OWN}jars/a%20b.jar", False),
    ],
)
def test_a_file_in_the_data_of_a_mesh_is_one_of_the_data_folder(
    storage: str, address: str, found: bool, tmp_path: Path
) -> None:
    (tmp_path / "mesh.yaml").write_text(
        f"namespace: shop\nactors: {{a: {{kind: wait, wait: {{for: 1s}}}}}}\n{storage}\n"
    )
    jar = tmp_path / "my%20data" / "jars" / "a%20b.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    find = data_files(load_mesh(tmp_path / "mesh.yaml"), f"file://{tmp_path / 'my%20data'}/")
    assert find(address) == (str(jar) if found else None)


def test_files_of_this_machine_stay_and_others_are_found_or_lacking() -> None:
    places = {"s3://b/there": "/data/there"}
    assert files_here(["/a", "s3://b/there", "s3://b/gone"], places.get) == (["/a", "/data/there"], ["s3://b/gone"])


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("{}", True),
        ("file://{}", True),
        ("local://{}", True),
        ("https://example.com{}", False),
        ("hdfs://{}", False),
        ("{}.gone", False),
        ("local://{}.gone", False),
    ],
)
def test_an_address_is_a_file_of_this_machine_or_not(form: str, found: bool, tmp_path: Path) -> None:
    jar = tmp_path / "own.jar"
    jar.touch()
    assert local_path(form.format(jar)) == (str(jar) if found else None)


def test_the_page_has_what_differs_in_the_test_kit() -> None:
    page = (PROJECT / "docs" / "reference" / "mesh-file.md").read_text()
    table = [row.split("|") for row in page.splitlines() if row.count("|") == 4]
    rows = {cells[1].strip(" `"): cells[3].strip().lower() for cells in table}
    previous = ""
    for name, setting in OF_THE_KIT.items():
        told = rows[name] if rows[name] != "the same" else previous
        assert told == setting.reason.lower()
        previous = told
