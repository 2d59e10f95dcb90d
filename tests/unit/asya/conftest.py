"""Fixtures for the tests of entry points."""

from collections.abc import Iterator

import pytest

from tests.doubles.dynamo import create_fan_in_table, create_tasks_table
from tests.doubles.fan_in_sets import start as start  # noqa: PLC0414
from tests.doubles.mesh_world import MeshWorld, mesh_world
from tests.unit.memory_tables import MemoryTables


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    """Queues, buckets, tables and a gateway around one function."""
    with mesh_world(monkeypatch) as made:
        yield made


@pytest.fixture
def dynamodb() -> MemoryTables:
    """The tables of fan-in, with real conditions."""
    tables = MemoryTables()
    create_fan_in_table(tables, "asya-shop-fan-in")
    create_tasks_table(tables, "asya-shop-sink")
    return tables
