"""Finds settings of a job that ask for a catalog of tables, which a local Spark does not have. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Where the images of EMR have the jars of table formats.
_IMAGE = ("/usr/share/aws/", "local:///usr/share/aws/")
_GLUE = ("com.amazonaws.glue.", "org.apache.iceberg.aws.glue.")
_INSTEAD = (
    "In the mesh file, a stage for the local cloud may say spark: {catalog: none, tables: parquet}; `asya local up --stage` "
    "deploys it"
)


def missing_catalog(conf: Mapping[str, str]) -> str | None:
    """Return why a local Spark cannot run a job with these settings, and what to do; None if they ask for no such catalog."""
    jars = [part.strip() for part in conf.get("spark.jars", "").split(",")]
    absent = [jar for jar in jars if jar.startswith(_IMAGE)]
    if absent:
        return (
            f"Iceberg's jars are not on this machine: {', '.join(absent)} is in the image of EMR Serverless only, so jobs "
            f"with tables: iceberg run on AWS. {_INSTEAD}"
        )
    if any(value.startswith(_GLUE) for value in conf.values()):
        return (
            "The Glue Data Catalog is not on this machine, and neither is its client for Spark, so jobs with catalog: glue "
            f"run on AWS. {_INSTEAD}"
        )
    return None
