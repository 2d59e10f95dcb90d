"""protocol §4: how long a message that stays on its queue is hidden."""

import pytest

from asya.messaging.nack import BlockedError, OutdatedError, nack_seconds

RECEIVES = [1, 2, 3, 4, 5, 6, 100]


@pytest.mark.rule("4.nack")
def test_4_the_visibility_timeout_doubles_with_each_receive() -> None:
    assert [nack_seconds(count, OSError("refused")) for count in RECEIVES] == [5, 10, 20, 40, 80, 80, 80]


@pytest.mark.rule("6.secrets.unreadable")
def test_6_the_messages_of_a_blocked_function_outlast_an_outage_of_45_minutes() -> None:
    """Between the default of five receives are four nacks."""
    seconds = [nack_seconds(count, BlockedError("no secret")) for count in RECEIVES]
    assert seconds == [300, 600, 900, 900, 900, 900, 900]
    assert sum(seconds[:4]) == 45 * 60


@pytest.mark.rule("5.12.deployment")
def test_5_an_outdated_function_waits_for_a_deployment() -> None:
    seconds = [nack_seconds(count, OutdatedError("no such actor")) for count in RECEIVES]
    assert seconds == [30, 60, 120, 240, 240, 240, 240]
    assert sum(seconds[:4]) == 450
