"""protocol §11: a pause that would outlive its record."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from asya.capabilities.pauses.resuming import expire_pause
from asya.protocol.task import TaskRecord
from asya.protocol.task_merge import merge
from tests.doubles.tasks import at, event

LIMIT = timedelta(days=29)


def paused_record() -> TaskRecord:
    record = merge(None, event("t", "received"))
    return merge(record, event("t", "paused", 1, 12))


@pytest.mark.rule("11.pause.longest")
def test_it_fails_with_its_envelope_for_x_sink() -> None:
    record = paused_record()
    assert expire_pause(record, LIMIT, now=at(12) + LIMIT - timedelta(seconds=1)) == record
    ended = expire_pause(record, LIMIT, now=at(12) + LIMIT)
    assert (ended.status, ended.reason, ended.pause) == ("failed", "Timeout", None)
    assert ended.error is not None
    assert "clean-flights was not answered within 696h0m0s" in ended.error.message
    assert ended.handover is not None
    assert (ended.handover.to, ended.handover.epoch) == ("x-sink", 1)
    assert merge(ended, event("t", "paused", 1, 12)) == ended
    assert expire_pause(ended, LIMIT, now=at(0) + 2 * LIMIT) == ended


@pytest.mark.rule("11.pause.longest")
def test_a_task_that_goes_on_is_left_alone() -> None:
    resumed = replace(paused_record(), status="running", pause=None, resumed_epoch=1)
    assert expire_pause(resumed, LIMIT, now=at(0) + 2 * LIMIT) == resumed
