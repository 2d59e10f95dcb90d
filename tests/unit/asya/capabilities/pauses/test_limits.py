"""protocol §11: how long a mesh can hold an envelope."""

from datetime import timedelta

import pytest

from asya.capabilities.pauses.limits import longest_wait
from asya.protocol.mesh_table import Retention

DAY = 86_400.0


@pytest.mark.rule("11.pause.longest", "11.wait.longest")
@pytest.mark.parametrize(("tasks", "payloads", "longest"), [(30, 45, 29), (90, 18, 17), (5, 45, 4.5), (10, 45, 9)])
def test_it_ends_before_record_and_envelope_expire(tasks: float, payloads: float, longest: float) -> None:
    retention = Retention(tasks=tasks * DAY, payloads=payloads * DAY)
    assert longest_wait(retention) == timedelta(days=longest)
