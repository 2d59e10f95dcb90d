"""The tests of `tests/cloud/test_own_capability.py` on the test kit, as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cloud import test_own_capability as on_the_cloud
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.simulation.same_verdict.comparable import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator

globals().update(comparable(on_the_cloud))


@pytest.fixture(scope="module")
def stamped() -> Iterator[KitCloud]:
    """The mesh of the sample."""
    with kit_cloud(on_the_cloud.MESH) as running:
        yield running
