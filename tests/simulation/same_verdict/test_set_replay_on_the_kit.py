"""The tests of `tests/cloud/test_set_replay.py` on the test kit, as they are."""

from tests.cloud import test_set_replay as on_the_cloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))
