"""Connecting to a local cloud by its `local.json`."""

import json
from pathlib import Path

import pytest

from asya.client.connection import read_local
from asya.client.errors import MeshError
from asya.protocol.keys import S3Prefix

LOCAL = {
    "endpoint_url": "http://127.0.0.1:4566",
    "emr_endpoint_url": "http://127.0.0.1:4567",
    "gateway_url": "http://127.0.0.1:4566/_aws/execute-api/abc/$default/",
    "region": "us-east-1",
    "access_key": "AKIAOPERATOR",
    "secret_key": "secret",
    "namespace": "flights",
    "results_bucket": "bucket",
    "results_prefix": "results/",
    "data_bucket": "bucket",
    "data_prefix": "data/",
    "tasks_table": "asya-flights-tasks",
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "local.json").write_text(json.dumps(LOCAL))
    return tmp_path


def test_the_connection_has_the_values_of_the_file(state: Path) -> None:
    connection = read_local(state)
    assert connection.gateway_url == "http://127.0.0.1:4566/_aws/execute-api/abc/$default"
    assert (connection.data, connection.results) == (S3Prefix("bucket", "data/"), S3Prefix("bucket", "results/"))
    assert connection.results.uri == "s3://bucket/results/"


def test_the_developers_own_aws_settings_are_ignored(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "AWS_PROFILE": "production",
        "AWS_DEFAULT_PROFILE": "production",
        "AWS_CONFIG_FILE": "/nowhere/config",
        "AWS_ACCESS_KEY_ID": "AKIADEVELOPER",
        "AWS_SECRET_ACCESS_KEY": "developer",
        "AWS_SESSION_TOKEN": "developer",
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    connection = read_local(state)
    for client in (connection.s3(), connection.sqs()):
        assert client.meta.endpoint_url == LOCAL["endpoint_url"]
        assert client.meta.region_name == "us-east-1"
        assert client.meta.config.proxies == {}
    credentials = connection.session.get_credentials()
    assert credentials is not None
    assert (credentials.access_key, credentials.token) == ("AKIAOPERATOR", None)


def test_no_secret_is_printed(state: Path) -> None:
    assert "secret" not in repr(read_local(state))


def test_without_a_cloud_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"no mesh is running here: .*local\.json does not exist") as caught:
        read_local(tmp_path)
    assert "asya local up" in caught.value.advice


@pytest.mark.parametrize("text", ["{", "[]", '{"region": "us-east-1"}', '{"access_key": 1}'])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "local.json").write_text(text)
    with pytest.raises(MeshError, match=r"local\.json does not describe a local cloud"):
        read_local(tmp_path)
