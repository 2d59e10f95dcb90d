"""The shares of hosts and owners (`protocol §13.a2a.push.shares`)."""

from asya import registry
from asya.capabilities.a2a.aws.push_sender import SECONDS
from asya.capabilities.a2a.push import HOST_SECONDS, OWNER_SECONDS, ShareUsedError, shares
from asya.function.nack import nack_seconds
from asya.protocol import names
from tests.doubles.tasks import at


def test_hosts_and_owners_have_shares_of_their_own() -> None:
    host, owner = shares("a.example", "ALICE", at(0))
    assert shares("A.example", "ALICE", at(59)) == (
        host.__class__(host.pk, host.sk, 120.0, "of this owner to host A.example"),
        owner,
    )
    other_host, other_owner = shares("b.example", None, at(60))
    assert len({each.pk for each in (host, owner, other_host, other_owner)}) == 4
    assert other_host.sk != host.sk


def test_owners_have_shares_of_their_own_at_a_host() -> None:
    (alice, _), (bob, _), (nobody, _) = (shares("a.example", owner, at(0)) for owner in ("ALICE", "BOB", None))
    assert len({alice.pk, bob.pk, nobody.pk}) == 3


def test_no_name_reaches_the_share_of_another() -> None:
    host, owner = shares("x", "x", at(0))
    assert host.pk != owner.pk
    assert len(shares("h" * 5000, "o\n#" * 100, at(0))[1].pk) < 100


def test_a_share_is_larger_than_one_notification_and_smaller_than_the_function() -> None:
    most_executions = 50
    assert SECONDS < HOST_SECONDS < OWNER_SECONDS
    # So many at once, at the beginning of a window.
    assert most_executions / 2 > OWNER_SECONDS / SECONDS


def test_notifications_that_wait_outlast_hours_of_a_burst() -> None:
    queues = registry.PRODUCT.functions[names.PUSH].queues
    assert queues is not None
    assert sum(nack_seconds(count, ShareUsedError()) for count in range(1, queues.receives)) >= 4 * 3600
