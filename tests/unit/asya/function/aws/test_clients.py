"""The SDK of a function must have what the mesh depends on."""

import os
import subprocess
import sys

import boto3
import botocore
import pytest

from asya.function.aws import clients
from asya.function.aws.clients import SdkError, require_conditional_writes

FUNCTION = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
}


@pytest.mark.parametrize("version", ["1.35.1", "1.34.162", "0.109.0"])
def test_a_botocore_without_conditional_writes_is_refused(version: str) -> None:
    with pytest.raises(SdkError, match=rf"botocore {version} .*needs botocore 1\.35\.2 or newer"):
        require_conditional_writes(version)


@pytest.mark.parametrize("version", ["1.35.2", "1.36.0", "1.100.0", "2.0.0", botocore.__version__])
def test_newer_versions_are_accepted(version: str) -> None:
    require_conditional_writes(version)


def test_the_installed_sdk_has_conditional_writes() -> None:
    put_object = boto3.client("s3", "eu-west-1").meta.service_model.operation_model("PutObject")
    assert "IfNoneMatch" in put_object.input_shape.members


@pytest.mark.rule("11.sink.endpoint")
def test_results_go_to_the_s3_of_the_mesh_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    clients.s3.cache_clear()
    assert clients.results_s3("https://s3.storage.example").meta.endpoint_url == "https://s3.storage.example"
    assert clients.results_s3(None) is clients.s3()
    clients.s3.cache_clear()


def test_a_cold_start_does_without_boto3_and_what_it_imports() -> None:
    code = (
        "import sys, asya.light.lambdas.sidecar; from asya.function.aws import clients; clients.sqs();"
        "clients.credentials_source();"
        "assert not {'boto3', 's3transfer', 'multiprocessing'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | FUNCTION)


def test_a_process_with_boto3_has_its_session() -> None:
    """Those of `asya dev` and of tests set one up."""
    code = (
        "import boto3; from asya.function.aws import clients; boto3.setup_default_session(region_name='eu-north-1');"
        "assert clients.sqs().meta.region_name == 'eu-north-1';"
        "assert clients.credentials_source() is boto3.DEFAULT_SESSION"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | FUNCTION)


@pytest.mark.slow
def test_both_make_clients_with_the_same_settings() -> None:
    code = (
        "import sys\nfrom asya.function.aws import clients\nif sys.argv[1:]: import boto3\n"
        "made = clients.sqs(); config = made.meta.config\n"
        "print(made.meta.endpoint_url, made.meta.region_name, config.read_timeout, config.retries, config.parameter_validation)"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, *more], check=True, env=os.environ | FUNCTION, capture_output=True
        ).stdout
        for more in ([], ["with boto3"])
    ]
    assert said[0] == said[1]
    assert b"https://sqs.eu-west-1.amazonaws.com" in said[0]
