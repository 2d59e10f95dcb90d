"""The tests of `tests/cloud/test_wait.py` on the test kit, as they are."""

from tests.cloud import test_wait as on_the_cloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))
