"""The counts that costs are computed from are those of a mesh in memory."""

import pytest

from asya_infra.costs.counts import counts
from tests.unit.asya_infra.costs.measured import differences, measure

pytestmark = pytest.mark.slow


def test_the_recorded_counts_are_those_that_are_measured() -> None:
    assert differences(counts(), measure()) == []
