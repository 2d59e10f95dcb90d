"""A pending envelope always has a dispatch request on its way (`protocol §10`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.heavy.aws.dispatch_requests import DispatchRequest, DispatchRequests, decode_request
from asya.heavy.aws.start_limits import QuotaBucket, StartRate
from tests.doubles.heavy import HeavyWorld, heavy_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.fixture
def requests(world: HeavyWorld) -> DispatchRequests:
    return world.services.requests


def test_one_is_enough_until_it_has_arrived(world: HeavyWorld, requests: DispatchRequests) -> None:
    assert requests.ensure("clean", 0, now=NOW)
    assert not requests.ensure("clean", 0, now=NOW)
    assert requests.ensure("stats", 0, now=NOW)

    requests.clear("clean")

    assert requests.ensure("clean", 0, now=NOW)
    assert [body["actor"] for body in world.bodies("x-dispatch")].count("clean") == 2


def test_a_flag_that_is_too_old_is_a_request_that_was_lost(requests: DispatchRequests) -> None:
    requests.ensure("clean", 2, now=NOW)

    assert not requests.ensure("clean", 0, now=NOW + timedelta(seconds=61))
    assert requests.ensure("clean", 0, now=NOW + timedelta(seconds=63))


def test_a_request_that_arrives_before_its_flag_is_set_leaves_it_clear(
    world: HeavyWorld, requests: DispatchRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = world.sqs.send_message

    def overtaken(**message: Any) -> None:
        send(**message)
        assert requests.accept(decode_request(message["MessageBody"].encode()), now=NOW)  # the dispatcher is that quick

    with monkeypatch.context() as quick:
        quick.setattr(world.sqs, "send_message", overtaken)
        requests.ensure("clean", 0, now=NOW)
        requests.ensure("clean", 0, now=NOW)

    assert not requests.is_requested("clean", now=NOW)
    assert requests.ensure("clean", 0, now=NOW)


def test_only_requests_that_wait_for_capacity_are_expedited(world: HeavyWorld, requests: DispatchRequests) -> None:
    requests.ensure("clean", 60, now=NOW)
    requests.ensure("stats", 60, now=NOW, for_capacity=True)

    for actor in ("clean", "stats", "nobody"):
        requests.expedite(actor, now=NOW)

    assert world.bodies("x-dispatch") == [{"actor": "stats"}]


@pytest.mark.rule("10.busy.one-request")
def test_10_a_surplus_request_leaves_the_flag_of_another_set_and_ends(
    world: HeavyWorld, requests: DispatchRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[DispatchRequest] = []
    monkeypatch.setattr(
        world.sqs, "send_message", lambda **message: sent.append(decode_request(message["MessageBody"].encode()))
    )
    requests.ensure("clean", 60, now=NOW, for_capacity=True)
    requests.expedite("clean", now=NOW)
    waiting, hurried = sent

    assert not requests.accept(hurried, now=NOW)
    assert not requests.ensure("clean", 60, now=NOW)  # still no room: nothing is sent in its stead
    assert requests.accept(waiting, now=NOW)
    assert requests.ensure("clean", 60, now=NOW)
    assert not requests.accept(waiting, now=NOW)  # delivered again


@pytest.mark.rule("10.busy.one-request")
def test_10_without_a_flag_any_request_is_taken_up(requests: DispatchRequests) -> None:
    requests.ensure("clean", 0, now=NOW)
    lost = NOW + timedelta(seconds=61)

    assert requests.accept(DispatchRequest("clean"), now=lost)
    assert requests.accept(DispatchRequest("clean", turn=0), now=NOW)


@pytest.mark.parametrize(
    "body", [b"x", b"[]", b"{}", b'{"actor": 1}', b'{"actor": "A/b"}', b'{"actor": "clean", "turn": "x"}']
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        decode_request(body)


def test_the_quota_fills_at_its_rate_and_no_further_than_its_burst(world: HeavyWorld) -> None:
    quota = StartRate(world.dynamodb, table="asya-flights-pending", per_second=2.0, burst=3)

    waits = [quota.take(now=NOW + timedelta(seconds=seconds)) for seconds in (0, 0, 0, 0, 0.5, 0.5, 60, 60, 60, 60)]

    assert waits == [0, 0, 0, 0.5, 0, 0.5, 0, 0, 0, 0.5]


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    assert QuotaBucket(1.0, 100.0).filled(90.0, 1.0, 5) == QuotaBucket(1.0, 100.0)
