"""The settings that `catalog` and `tables` give to a job."""

import pytest

from asya.protocol.mesh_table import SparkJob
from asya_infra.mesh_file.table import to_table
from tests.unit.asya_infra.mesh_file.loading import load

pytestmark = pytest.mark.usefixtures("folder")

GLUE_CLIENT = "spark.hadoop.hive.metastore.client.factory.class"
EMR_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def job(spark: str = "", more: str = "", stage: str = "", name: str = "a") -> SparkJob:
    loaded = load(
        f"namespace: shop\nactors:\n  a: {{spark: {{job: heavy.crunch, {spark}}}}}\n"
        f"  b: {{spark: {{job: heavy.crunch}}}}\n{more}\n",
        stage,
    )
    found = to_table(loaded).actors[name].spark
    assert found is not None
    return found


def test_a_job_has_no_catalog_unless_it_is_asked_for() -> None:
    assert job().conf == {}


def test_glue_is_the_catalog_of_spark() -> None:
    assert job("catalog: glue").conf == {
        "spark.sql.catalogImplementation": "hive",
        GLUE_CLIENT: "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory",
    }


def test_iceberg_is_a_catalog_beside_it() -> None:
    conf = job("catalog: glue, tables: iceberg").conf
    assert conf[GLUE_CLIENT]
    assert conf["spark.sql.catalog.iceberg"] == "org.apache.iceberg.spark.SparkCatalog"
    assert conf["spark.sql.catalog.iceberg.catalog-impl"] == "org.apache.iceberg.aws.glue.GlueCatalog"
    assert conf["spark.sql.catalog.iceberg.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert (conf["spark.sql.extensions"], conf["spark.jars"]) == (EXTENSIONS, EMR_JAR)


def test_the_settings_of_the_job_win_and_its_jars_and_extensions_are_added() -> None:
    conf = job(
        "catalog: glue, tables: iceberg, conf: {spark.jars: 'local:///a.jar, local:///b.jar', spark.sql.extensions: x.Y,"
        " spark.sql.catalog.iceberg.io-impl: my.Io, spark.sql.catalog.iceberg.warehouse: 's3://lake/w'}"
    ).conf
    assert conf["spark.jars"] == f"{EMR_JAR},local:///a.jar,local:///b.jar"
    assert conf["spark.sql.extensions"] == f"{EXTENSIONS},x.Y"
    assert conf["spark.sql.catalog.iceberg.io-impl"] == "my.Io"
    assert conf["spark.sql.catalog.iceberg.warehouse"] == "s3://lake/w"


def test_an_iceberg_jar_of_the_job_replaces_that_of_emr() -> None:
    jar = "local:///opt/iceberg-spark-runtime-4.0_2.13-1.11.0.jar"
    assert job(f"catalog: glue, tables: iceberg, conf: {{spark.jars: '{jar}'}}").conf["spark.jars"] == jar


def test_jars_of_a_job_without_iceberg_stay_as_they_are() -> None:
    assert job("catalog: glue, conf: {spark.jars: 'local:///a.jar'}").conf["spark.jars"] == "local:///a.jar"


def test_the_mesh_sets_both_for_actors_that_do_not() -> None:
    more = "spark: {catalog: glue, tables: iceberg}"
    assert job("", more).conf == job("catalog: glue, tables: iceberg").conf
    assert "spark.jars" not in job("tables: parquet", more).conf
    assert job("catalog: none, tables: parquet", more).conf == {}
    assert job("catalog: none, tables: parquet", more, name="b").conf == job("", more).conf


def test_the_compaction_of_results_needs_none() -> None:
    assert job("", "spark: {catalog: glue, tables: iceberg}", name="x-index") == job(name="x-index")


def test_a_stage_takes_them_away() -> None:
    more = "spark: {catalog: glue, tables: iceberg}\nstages: {laptop: {spark: {catalog: none, tables: parquet}}}"
    assert job("", more, "laptop").conf == {}
