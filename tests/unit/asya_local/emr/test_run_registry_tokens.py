"""The rate limit of calls, and client tokens that make StartJobRun idempotent."""

import pytest

from asya_local.emr.run_registry import ClientTokens, TokenBucket, TokenMismatchError


def test_a_burst_and_then_one_token_a_second() -> None:
    bucket = TokenBucket(per_second=1, burst=3)

    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(100.5)
    assert bucket.take(101.0)
    assert [bucket.take(1000.0) for _ in range(4)] == [True, True, True, False]


def test_a_bucket_that_never_fills() -> None:
    bucket = TokenBucket(per_second=0, burst=0)
    assert not bucket.take(0)
    assert not bucket.take(1e9)


def test_a_client_token_returns_its_run_and_refuses_other_parameters() -> None:
    tokens = ClientTokens()
    assert tokens.find("t", "a") is None
    tokens.save("t", "a", "run")
    assert tokens.find("t", "a") == "run"
    with pytest.raises(TokenMismatchError):
        tokens.find("t", "b")
