"""The settings of functions, and the errors for missing ones."""

from pathlib import Path

import pytest

from asya.function.aws.settings import SettingsError, load_settings
from asya.protocol.mesh_table import Actor, MeshTable, encode_table

TABLE = MeshTable(namespace="flights", actors={"inspect": Actor(kind="handler")})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "mesh.json").write_bytes(encode_table(TABLE))
    return {
        "LAMBDA_TASK_ROOT": str(tmp_path),
        "AWS_REGION": "eu-central-1",
        "ASYA_ACTOR": "inspect",
        "ASYA_BUCKET": "bucket",
        "ASYA_DATA_URI": "s3://bucket/data",
        "ASYA_RESULTS_URI": "s3://bucket/results/",
        "ASYA_QUEUE_URL_PREFIX": "https://sqs.eu-central-1.amazonaws.com/123456789012/",
    }


SPARK = {
    "ASYA_SPARK_APPLICATION_ID": "00f1",
    "ASYA_ROLE_PREFIX": "arn:aws:iam::123456789012:role/",
    "ASYA_JOB_ENTRY_POINT": "s3://assets/entry.py",
    "ASYA_JOB_PY_FILES": "s3://assets/a.zip",
    "ASYA_JOB_CODE": "s3://assets/b.tar.gz",
    "ASYA_ACCESS_POLICY_PREFIX": "arn:aws:iam::123456789012:policy/",
}


def test_settings_of_an_actor(environ: dict[str, str]) -> None:
    settings = load_settings(environ)
    assert (settings.namespace, settings.actor, settings.region) == ("flights", "inspect", "eu-central-1")
    assert (settings.account, settings.data_uri) == ("123456789012", "s3://bucket/data/")
    assert settings.queue_url("x-sink") == "https://sqs.eu-central-1.amazonaws.com/123456789012/asya-flights-x-sink"
    assert settings.table_name("tasks") == "asya-flights-tasks"
    assert (settings.gateway_url, settings.spark) == (None, None)


def test_a_gateway_url_has_no_trailing_slash(environ: dict[str, str]) -> None:
    assert load_settings(environ | {"ASYA_GATEWAY_URL": "https://api/"}).gateway_url == "https://api"


def test_settings_of_a_function_that_deals_with_job_runs(environ: dict[str, str]) -> None:
    spark = load_settings(environ | SPARK).spark
    assert spark is not None
    assert (spark.py_files, spark.jobs) == (("s3://assets/a.zip",), "s3://assets/b.tar.gz")
    assert spark.managed_logs
    assert spark.packages is None
    packed = load_settings(environ | SPARK | {"ASYA_JOB_PACKAGES": "s3://assets/c.tar.gz"}).spark
    assert packed is not None
    assert packed.packages == "s3://assets/c.tar.gz"
    without = load_settings(environ | SPARK | {"ASYA_MANAGED_JOB_LOGS": "false"}).spark
    assert without is not None
    assert not without.managed_logs


@pytest.mark.parametrize(
    "name",
    ["LAMBDA_TASK_ROOT", "AWS_REGION", "ASYA_ACTOR", "ASYA_BUCKET", "ASYA_QUEUE_URL_PREFIX", "ASYA_ROLE_PREFIX"],
)
def test_a_missing_variable_is_named(environ: dict[str, str], name: str) -> None:
    environment = environ | SPARK
    del environment[name]
    with pytest.raises(SettingsError, match=name):
        load_settings(environment)


def test_a_missing_or_foreign_table_is_named(environ: dict[str, str]) -> None:
    path = Path(environ["LAMBDA_TASK_ROOT"]) / "mesh.json"
    path.write_text('{"namespace": 1}')
    with pytest.raises(SettingsError, match=r"mesh\.json.*version"):
        load_settings(environ)
    path.unlink()
    with pytest.raises(SettingsError, match=r"cannot read .*mesh\.json"):
        load_settings(environ)
