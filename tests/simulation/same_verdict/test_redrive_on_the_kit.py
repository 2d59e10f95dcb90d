"""The tests of `tests/cloud/test_redrive.py` on the test kit, as they are."""

from tests.cloud import test_redrive as on_the_cloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))
