"""Fixtures for the tests of entry points."""

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from asya import data
from tests.doubles.dynamo import create_fan_in_table, create_tasks_table
from tests.doubles.fan_in_sets import start as start  # noqa: PLC0414
from tests.doubles.mesh_world import MeshWorld, mesh_world
from tests.unit.memory_tables import MemoryTables


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """Queues, buckets, tables and a gateway around one function."""
    with mesh_world(monkeypatch) as made:
        yield made


@pytest.fixture(params=["s3://meshdata/data/", "s3://meshdata", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of empty data, in a bucket and in a folder."""
    if request.param == "folder":
        monkeypatch.setenv("ASYA_DATA_URI", f"file://{tmp_path}/")
        yield f"file://{tmp_path}/"
        return
    monkeypatch.setenv("ASYA_DATA_URI", request.param)
    for variable, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(variable, value)
    with mock_aws():
        data._s3.cache_clear()
        boto3.client("s3").create_bucket(Bucket="meshdata")
        yield request.param.rstrip("/") + "/"
    data._s3.cache_clear()


@pytest.fixture
def dynamodb() -> MemoryTables:
    """The tables of fan-in, with real conditions."""
    tables = MemoryTables()
    create_fan_in_table(tables, "asya-shop-fan-in")
    create_tasks_table(tables, "asya-shop-sink")
    return tables
