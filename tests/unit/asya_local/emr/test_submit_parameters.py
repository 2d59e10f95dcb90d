"""`sparkSubmitParameters` are parsed as spark-submit parses its options."""

import pytest

from asya_local.emr.local_spark import local_conf
from asya_local.emr.submit_parameters import SubmitParametersError, parse


def test_options_are_read_as_spark_submit_reads_them() -> None:
    parameters = parse(
        "--conf spark.a=1 --conf 'spark.b=two words' --conf=spark.c=x=y --py-files s3://b/one.zip,s3://b/two.zip "
        "--archives=s3://b/e.tar.gz#env --driver-memory 2g --name job "
        "--conf spark.emr-serverless.driverEnv.PYTHONPATH=./env",
        {"spark.a": "0", "spark.d": "default"},
    )

    assert parameters.conf["spark.a"] == "1"
    assert parameters.conf["spark.b"] == "two words"
    assert parameters.conf["spark.c"] == "x=y"
    assert parameters.conf["spark.d"] == "default"
    assert parameters.files("spark.submit.pyFiles") == ["s3://b/one.zip", "s3://b/two.zip"]
    assert parameters.files("spark.archives") == ["s3://b/e.tar.gz#env"]
    assert parameters.driver_environment() == {"PYTHONPATH": "./env"}


def test_the_python_of_emr_serverless_is_not_used_locally() -> None:
    pinned = "/usr/bin/python3.12"
    parameters = parse(
        f"--conf spark.emr-serverless.driverEnv.PYSPARK_PYTHON={pinned} --conf spark.executorEnv.PYSPARK_PYTHON={pinned} "
        f"--conf spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON={pinned} --conf spark.pyspark.python={pinned} "
        f"--conf spark.pyspark.driver.python={pinned} --conf spark.emr-serverless.driverEnv.ASYA_JOB_PYTHON=3.12 "
        "--conf spark.executorEnv.ASYA_JOB_PYTHON=3.12 --conf spark.executorEnv.REGION=eu"
    )
    assert parameters.driver_environment() == {}
    assert local_conf(parameters.conf) == {"spark.executorEnv.REGION": "eu"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--deploy-mode cluster", "does not know --deploy-mode"),
        ("--conf", "--conf has no value"),
        ("--conf spark.a", "not of the form key=value"),
        ("--conf 'open", "cannot be split"),
    ],
)
def test_invalid_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(SubmitParametersError, match=message):
        parse(text)
