"""The SDK of a function must have what the mesh depends on."""

import boto3
import botocore
import pytest

from asya.function.aws import clients
from asya.function.aws.clients import SdkError, require_conditional_writes


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
