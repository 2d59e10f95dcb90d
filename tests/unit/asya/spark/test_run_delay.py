"""The delay of a job run, which tells a stuck run from a slow one (`protocol §15`)."""

from datetime import timedelta

import pytest

from asya.spark.run_delay import run_delay
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
