"""Keys of objects in Spark: one reference is one file, or is refused by name."""

import re
import tempfile

import pytest
from hypothesis import HealthCheck, assume, given, settings
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from asya import data as handler_data
from asya_spark import data
from tests.doubles.s3_keys import any_key

ODD = [
    "Screenshot 3.15.04\u202fPM.csv",
    "invoice [final].csv",
    "a{b,c}.csv",
    "a*b?.csv",
    "[.csv",
    "back\\slash.csv",
    "a,b.csv",
    "100% + #%20.csv",
    " new\nline\x01 ",
    "😀/x[1]/f.csv",
]
# Each would be read too if the name were a pattern.
DECOYS = ["invoice f.csv", "ab.csv", "ac.csv", "aXbY.csv", "backslash.csv", "😀/x1/f.csv", "a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"file://{tmp_path_factory.mktemp('keys')}/"


@pytest.fixture(autouse=True)
def _data_uri(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYA_DATA_URI", folder)


@pytest.mark.rule("1.references", "1.references.paths")
@pytest.mark.parametrize("name", ODD)
def test_1_a_reference_is_one_file(spark: SparkSession, name: str) -> None:
    for decoy in DECOYS:
        handler_data.write(decoy, b"decoy\n")
    handler_data.write(name, b"right\n")
    uri = data.uri(name)
    assert [row.value for row in spark.read.text(uri).collect()] == ["right"]
    lines = spark.sparkContext.textFile(uri)
    if re.search(r",(?![^{]*\})", name):
        with pytest.raises(Py4JJavaError, match="escaped character"):
            lines.collect()  # it splits at commas, and so must read nothing
    else:
        assert lines.collect() == ["right"]
    assert spark.read.text(data.object_uri(data.uri(name, write=True))).count() == 1


@pytest.mark.rule("1.references.paths")
def test_1_a_pattern_is_for_many_files(spark: SparkSession) -> None:
    for name in ("many/a.csv", "many/b.csv", "many/c.txt"):
        handler_data.write(name, b"x\n")
    assert spark.read.text(data.pattern("many/*.csv")).count() == 2


@pytest.mark.rule("1.references.paths")
@pytest.mark.parametrize("name", ["clean/plain", "clean/[x]", "clean/{a,b}", "clean/a*"])
def test_1_what_is_written_is_read(spark: SparkSession, name: str) -> None:
    spark.range(3).write.parquet(data.uri(name, write=True), mode="overwrite")
    assert spark.read.parquet(data.uri(name)).count() == 3


@pytest.mark.rule("1.references.paths")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raw//x", "'//'"),
        ("raw/../x", "lead elsewhere"),
        ("/x", "starts with '/'"),
        ("raw/_x.csv", "ignores the name"),
        ("raw/.x.csv", "ignores the name"),
        ("raw/3:15 [x].csv", "beside a colon"),
    ],
)
def test_1_what_hadoop_cannot_read_is_refused_with_the_reason(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        data.uri(name)


@pytest.mark.parametrize("uri", ["raw/x.csv", "s3://bucket", "s3://bucket/", "x"])
def test_only_a_uri_of_an_object_is_one(uri: str) -> None:
    with pytest.raises(ValueError, match="no URI of an object"):
        data.object_uri(uri)


def test_an_object_of_another_bucket_keeps_its_bucket() -> None:
    assert data.object_uri("s3://partner/in [1].csv") == "s3://partner/in \\[1\\].csv"


@pytest.mark.rule("1.references", "1.references.paths")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(key=any_key())
def test_1_any_key_is_read_as_one_file_or_refused(spark: SparkSession, key: str) -> None:
    """Local disks have no NUL, no long names, and Hadoop's checksums beside files no colons."""
    assume(not key.endswith("/") and not re.search(r"[:\0]", key))
    assume(max(len(part.encode()) for part in key.split("/")) < 200)
    # A folder of its own: a disk cannot have both `a` and `a/b`, as S3 can.
    with tempfile.TemporaryDirectory() as own, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASYA_DATA_URI", f"file://{own}/")
        _check_read_or_refused(spark, key)


def _check_read_or_refused(spark: SparkSession, key: str) -> None:
    try:
        uri = data.uri(key)
    except ValueError:
        parts = key.split("/")
        assert (
            key.startswith("/")
            or {"", ".", ".."} & set(parts)
            or parts[-1][0] in "_."
            or parts[-1].endswith("_COPYING_")
        )
        return
    handler_data.write(key, key.encode())
    [row] = spark.read.format("binaryFile").load(uri).collect()
    assert bytes(row.content) == key.encode()
