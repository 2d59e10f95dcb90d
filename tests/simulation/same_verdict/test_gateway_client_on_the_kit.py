"""The tests of `tests/cloud/test_gateway_client.py` on the test kit, as they are."""

from tests.cloud import test_gateway_client as on_the_cloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))
