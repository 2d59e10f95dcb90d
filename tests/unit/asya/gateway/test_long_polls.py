"""The permits of long polls (`protocol §13.waits`)."""

import pytest

from asya.gateway.long_polls import LEASE, RETRY_AFTER, permit_pools
from asya.gateway.routes.tools import WAIT_SECONDS
from asya.protocol.mesh_table import Gateway


def test_a_lease_outlasts_every_wait() -> None:
    assert LEASE > 30 > WAIT_SECONDS


def test_callers_have_pools_of_their_own_and_share_one() -> None:
    limits = Gateway(long_polls=7, long_polls_per_caller=3)
    (alice, all_calls), (bob, same) = permit_pools("AIDAALICE", limits), permit_pools("AIDABOB", limits)
    assert (alice.size, bob.size, all_calls.size) == (3, 3, 7)
    assert alice.name != bob.name
    assert all_calls == same


def test_no_principal_reaches_the_pool_of_all_or_puts_text_into_a_key() -> None:
    for principal in ("", "all", "jwt:a\n#https://issuer", "x" * 4000):
        own, all_calls = permit_pools(principal, Gateway())
        assert own.name != all_calls.name
        assert len(own.name) == len("POLL#") + 64


@pytest.mark.parametrize(
    ("taken", "start", "free"),
    [
        ((), 0.0, [0, 1, 2, 3]),
        ((), 0.5, [2, 3, 0, 1]),
        ((3, 0), 0.99, [1, 2]),
        ((0, 1, 2, 3), 0.3, []),
        ((9,), 0.0, [0, 1, 2, 3]),
    ],
)
def test_free_permits_start_at_a_random_one(taken: tuple[int, ...], start: float, free: list[int]) -> None:
    _, pool = permit_pools("AIDAALICE", Gateway(long_polls=4))
    assert list(pool.free(taken, start)) == free


def test_a_refusal_names_the_limit_and_when_to_try_again() -> None:
    own, all_calls = (
        pool.refusal() for pool in permit_pools("AIDAALICE", Gateway(long_polls=7, long_polls_per_caller=3))
    )
    assert (own.status, own.code, own.retry_after) == (429, "too_many_long_polls", RETRY_AFTER)
    assert own.message == (
        "3 calls of this caller already wait for tasks (gateway.long_polls_per_caller); try again in 5 s"
    )
    assert all_calls.message == "7 calls already wait for tasks (gateway.long_polls); try again in 5 s"
