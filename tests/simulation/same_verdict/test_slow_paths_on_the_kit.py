"""The tests of `tests/cloud/test_slow_paths.py` on the test kit, as they are."""

from datetime import timedelta

import pytest

from asya.protocol.times import format_time
from tests.cloud import test_slow_paths as on_the_cloud
from tests.cloud.environment import now
from tests.cloud.paths_mesh import LOST_PAYLOADS, OVERDUE_PAYLOAD, NewEnvelope, note_sent, send
from tests.doubles.kit_cloud import KitCloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


@pytest.fixture(scope="module", autouse=True)
def slow_envelopes(paths: KitCloud) -> None:
    """Sends the envelopes of the tests. The handler takes its time on the machine, so its deadline is near."""
    note_sent(paths, "crash")
    send(paths, NewEnvelope(["deaf"], LOST_PAYLOADS["crash"], envelope_id="crash"))
    status = {"deadline_at": format_time(now() + timedelta(seconds=2))}
    send(paths, NewEnvelope(["once"], OVERDUE_PAYLOAD, status=status, envelope_id="overdue"))
