"""Parses `sparkSubmitParameters`, the options of spark-submit on EMR Serverless. Pure.

Finds settings that ask for a catalog of tables, which a local Spark does not have.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asya_local.emr.local_spark import PYTHON_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIST_OPTIONS = {
    "--py-files": "spark.submit.pyFiles",
    "--files": "spark.files",
    "--jars": "spark.jars",
    "--archives": "spark.archives",
}
_SINGLE_OPTIONS = {
    "--driver-cores": "spark.driver.cores",
    "--driver-memory": "spark.driver.memory",
    "--executor-cores": "spark.executor.cores",
    "--executor-memory": "spark.executor.memory",
    "--num-executors": "spark.executor.instances",
    "--name": "spark.app.name",
}
_DRIVER_ENVIRONMENT = "spark.emr-serverless.driverEnv."


class SubmitParametersError(ValueError):
    """The parameters are not valid options of spark-submit."""


@dataclass(frozen=True)
class SubmitParameters:
    """The Spark configuration of `sparkSubmitParameters` and the configuration overrides."""

    conf: Mapping[str, str] = field(default_factory=dict)

    def files(self, name: str) -> list[str]:
        """Return the URIs of a file option, such as `spark.jars`."""
        return [part.strip() for part in self.conf.get(name, "").split(",") if part.strip()]

    def driver_environment(self) -> dict[str, str]:
        """Return the environment variables of the driver, without those that select its Python."""
        variables = {
            key.removeprefix(_DRIVER_ENVIRONMENT): value
            for key, value in self.conf.items()
            if key.startswith(_DRIVER_ENVIRONMENT)
        }
        return {name: value for name, value in variables.items() if name not in PYTHON_VARIABLES}


def parse(text: str | None, defaults: Mapping[str, str] | None = None) -> SubmitParameters:
    """Parse the parameters.

    Args:
        text: The value of `sparkSubmitParameters`.
        defaults: The `spark-defaults` of the configuration overrides.

    Raises:
        SubmitParametersError: An option is unknown or has no value.
    """
    conf = dict(defaults or {})
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise SubmitParametersError(f"sparkSubmitParameters cannot be split into words: {error}") from None
    while words:
        option, _, value = words.pop(0).partition("=")
        if not value:
            if not words:
                raise SubmitParametersError(f"sparkSubmitParameters: {option} has no value")
            value = words.pop(0)
        if option == "--conf":
            key, equals, setting = value.partition("=")
            if not equals:
                raise SubmitParametersError(f"sparkSubmitParameters: --conf {value} is not of the form key=value")
            conf[key] = setting
        elif option in _LIST_OPTIONS or option in _SINGLE_OPTIONS:
            conf[_LIST_OPTIONS.get(option) or _SINGLE_OPTIONS[option]] = value
        else:
            raise SubmitParametersError(
                f"sparkSubmitParameters: the local EMR Serverless does not know {option}; "
                "it takes --conf, --py-files, --files, --jars, --archives, --name and the driver and executor sizes"
            )
    return SubmitParameters(conf)


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
