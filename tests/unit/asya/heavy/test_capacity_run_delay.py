"""The delay of a job run, which tells a stuck run from a slow one (`protocol §15`)."""

from datetime import timedelta

import pytest

from asya.heavy.capacity import run_delay
from tests.doubles.tasks import at

FORMED_AT = at(0).isoformat()
MAX_RUN = timedelta(minutes=30)


@pytest.mark.rule("15.RunDelay")
@pytest.mark.parametrize(
    ("running_after", "now", "delay"),
    [
        (None, 60, 60),  # it waits
        (None, 7200, 7200),
        (600, 700, 0),  # it runs
        (600, 600 + 1800, 0),  # it runs as long as it may
        (600, 600 + 1800 + 90, 90),  # EMR Serverless should have ended it
    ],
)
def test_15_a_run_waits_or_exceeds_its_limit(running_after: int | None, now: int, delay: int) -> None:
    running_at = None if running_after is None else at(running_after).isoformat()
    assert run_delay(FORMED_AT, running_at, MAX_RUN, at(now)) == timedelta(seconds=delay)


@pytest.mark.rule("15.RunDelay")
@pytest.mark.parametrize(("now", "delay"), [(700, 700), (600 + 1800 + 90, 600 + 1800 + 90)])
def test_15_a_run_whose_driver_has_no_executor_still_waits(now: int, delay: int) -> None:
    has_waited = run_delay(FORMED_AT, at(600).isoformat(), MAX_RUN, at(now), has_executor=False)
    assert has_waited == timedelta(seconds=delay)
