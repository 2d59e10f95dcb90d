"""The tests of `tests/cloud/test_redrive.py` on the test kit, as they are."""

from contextlib import ExitStack

import pytest

from asya.protocol import names
from tests.cloud import test_redrive as on_the_cloud
from tests.cloud.deployed_cloud import until
from tests.doubles.kit_cloud import KitCloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


@pytest.fixture(scope="module", autouse=True)
def broken_courier(paths: KitCloud) -> ExitStack:
    """An order whose process dies at courier: the kit has no permission that courier could lack."""
    paths.kit.kill_during("courier")
    on_the_cloud.start(paths, "order-1", "courier", "x-checkpoint", "clerk")
    dead_letters = names.dlq_name("paths", "courier")
    until(lambda: paths.message_count(dead_letters) or None, "SQS to give the order up", seconds=3600)
    return ExitStack()
