"""The gateway's functions over a table in memory and emulated queues."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.gateway_functions import Gateway, emulated_gateway
from tests.unit.memory_tables import memory_tables


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with memory_tables(), emulated_gateway(tmp_path) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The gateway on one table for all tests of a module; each test has its own tasks and session."""
    with memory_tables(), emulated_gateway(tmp_path_factory.mktemp("mcp")) as gateway:
        yield gateway
