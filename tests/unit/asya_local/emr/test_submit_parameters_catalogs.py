"""A job that asks for a catalog is refused by a local Spark, in words that say what to do."""

import pytest

from asya_infra.mesh_file.actor_model import SparkSection
from asya_infra.mesh_file.sections import read_section
from asya_infra.mesh_file.spark import spark_conf
from asya_local.emr.submit_parameters import missing_catalog

INSTEAD = (
    "In the mesh file, a stage for the local cloud may say spark: {catalog: none, tables: parquet}; `asya local up --stage` "
    "deploys it"
)


def refusal(**keys: object) -> str | None:
    """Return the refusal of a job whose mesh file has these keys."""
    return missing_catalog(spark_conf(read_section(SparkSection, {"job": "heavy.crunch", **keys})))


def test_iceberg() -> None:
    assert refusal(catalog="glue", tables="iceberg") == (
        "Iceberg's jars are not on this machine: /usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar is in the image of "
        f"EMR Serverless only, so jobs with tables: iceberg run on AWS. {INSTEAD}"
    )


def test_glue() -> None:
    text = (
        "The Glue Data Catalog is not on this machine, and neither is its client for Spark, so jobs with catalog: glue run on "
        f"AWS. {INSTEAD}"
    )
    assert refusal(catalog="glue") == text
    own_jar = {"spark.jars": "s3://lib/iceberg-spark-runtime-4.0_2.13-1.10.1.jar"}
    assert refusal(catalog="glue", tables="iceberg", conf=own_jar) == text


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark.jars": "s3://lib/a.jar"},
        {
            "spark.jars": "s3://lib/iceberg-spark-runtime-4.0_2.13-1.10.1.jar",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
        },
    ],
)
def test_other_jobs_run(conf: dict[str, str]) -> None:
    assert refusal(conf=conf) is None
