"""protocol §4: how long a message that stays on its queue is hidden."""

import pytest

from asya.function.nack import BlockedError, OutdatedError, nack_seconds
from asya.protocol.mesh_table import QUEUE_RECEIVES
from asya_infra import timings

RECEIVES = [1, 2, 3, 4, 5, 6, 100]


@pytest.mark.rule("4.nack")
def test_4_the_visibility_timeout_doubles_with_each_receive() -> None:
    assert [nack_seconds(count, OSError("refused")) for count in RECEIVES] == [5, 10, 20, 40, 80, 80, 80]


@pytest.mark.rule("4.nack")
def test_4_messages_of_an_outage_return_with_jitter_at_the_latest_after_a_quarter_of_an_hour() -> None:
    def seconds(chance: float) -> list[int]:
        return [nack_seconds(count, OSError(), is_outage=True, chance=chance) for count in (1, 2, 3, 8, 9, 180)]

    assert seconds(0.0) == [3, 5, 10, 320, 450, 450]
    assert seconds(0.999) == [5, 10, 20, 640, 900, 900]


@pytest.mark.rule("4.dead-letters")
def test_4_all_receives_of_an_outage_end_within_the_retention_of_a_queue() -> None:
    """A message is lost if its queue has kept it for too long, and no dead letter.

    A receive of a function that does not come to work lasts as long as its visibility timeout.
    """
    retention = timings.QUEUE_RETENTION_DAYS * 86400
    longest = timings.visibility_timeout(timings.FUNCTION_TIMEOUT_LIMIT, window=300)
    assert (
        sum(nack_seconds(count, OSError(), is_outage=True) for count in range(1, QUEUE_RECEIVES + 1)) < 0.6 * retention
    )
    assert QUEUE_RECEIVES * longest < 0.7 * retention
    assert (
        sum(nack_seconds(count, OSError(), is_outage=True, chance=0) for count in range(1, QUEUE_RECEIVES)) > 12 * 3600
    )


@pytest.mark.rule("6.secrets.unreadable")
def test_6_a_blocked_function_asks_again_after_five_to_fifteen_minutes() -> None:
    seconds = [nack_seconds(count, BlockedError("no secret")) for count in RECEIVES]
    assert seconds == [300, 600, 900, 900, 900, 900, 900]


@pytest.mark.rule("5.12.deployment")
def test_5_an_outdated_function_waits_for_a_deployment() -> None:
    seconds = [nack_seconds(count, OutdatedError("no such actor")) for count in RECEIVES]
    assert seconds == [30, 60, 120, 240, 240, 240, 240]
    assert sum(seconds[:4]) == 450
