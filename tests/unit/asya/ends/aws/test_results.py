"""protocol §11: results are complete envelopes as indented JSON, written in at most three tries."""

import json

import pytest
from botocore.exceptions import ClientError

from asya.ends.aws.results import Results
from asya.protocol.codec import decode
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message


def make(s3: MemoryS3, uri: str = "s3://bucket/results/") -> Results:
    return Results(s3, uri)  # type: ignore[arg-type]


@pytest.mark.rule("11.keys.body")
def test_the_body_is_the_envelope_indented_by_two() -> None:
    s3 = MemoryS3(bucket=Bucket(name="bucket"))
    body = message(payload={"text": "größe"})
    uri = make(s3).write_envelope("succeeded/env-1.json", decode(body), "shop")
    assert uri == "s3://bucket/results/succeeded/env-1.json"
    assert s3.metadata["results/succeeded/env-1.json"]["namespace"] == "shop"
    written = s3.objects["results/succeeded/env-1.json"].decode()
    assert json.loads(written) == json.loads(body)
    assert written.startswith('{\n  "id": "env-1",\n')
    assert "größe" in written


@pytest.mark.rule("11.sink.failed-upload")
@pytest.mark.parametrize(("failures", "written"), [(0, True), (2, True), (3, False)])
def test_three_tries(failures: int, written: bool) -> None:
    s3 = MemoryS3()
    s3.fails = lambda action, key: len(s3.calls) <= failures
    if written:
        make(s3).write("k", b"x")
        assert s3.keys() == ["results/k"]
    else:
        with pytest.raises(ClientError):
            make(s3).write("k", b"x")
    assert len(s3.calls) == min(failures + 1, 3)


def test_a_bucket_of_its_own_without_a_prefix() -> None:
    s3 = MemoryS3()
    assert make(s3, "s3://mine/").write("k", b"x") == "s3://mine/k"
    assert s3.keys() == ["k"]
