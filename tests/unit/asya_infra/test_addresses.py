"""S3 prefixes."""

import pytest

from asya.protocol.keys import S3Prefix


@pytest.mark.parametrize(
    ("uri", "prefix"),
    [("s3://b/results/", S3Prefix("b", "results/")), ("s3://b/", S3Prefix("b", "")), ("s3://b", S3Prefix("b", ""))],
)
def test_a_prefix_is_parsed_from_its_uri(uri: str, prefix: S3Prefix) -> None:
    assert S3Prefix.from_uri(uri) == prefix
