"""The rows of the index of results, by day."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from asya.client.errors import MeshError
from asya.ends.results import recent_object
from asya.protocol.keys import S3Prefix
from asya_cli.report.summary import read_rows
from tests.unit.asya_cli.report.test_summary import row

NOW = datetime(2026, 11, 25, 1, tzinfo=UTC)
SINCE = datetime(2026, 11, 24, 22, tzinfo=UTC)


@mock_aws
def test_the_rows_of_the_days_are_read_and_foreign_lines_are_left_out() -> None:
    s3 = boto3.client("s3", "us-east-1")
    s3.create_bucket(Bucket="bucket")
    connection: Any = SimpleNamespace(s3=lambda: s3, results=S3Prefix("bucket", "results/"))
    for day, name in (("2026-11-23", "old"), ("2026-11-24", "a"), ("2026-11-25", "b")):
        key, body = recent_object(day, [row(name, 1)])
        s3.put_object(Bucket="bucket", Key=f"results/{key}", Body=body + b"no row\n")
    assert sorted(each.id for each in read_rows(connection, SINCE, NOW)) == ["a", "b"]
    connection.results = S3Prefix("none", "results/")
    with pytest.raises(MeshError, match="cannot read the index of results in s3://none/results/"):
        list(read_rows(connection, SINCE, NOW))
