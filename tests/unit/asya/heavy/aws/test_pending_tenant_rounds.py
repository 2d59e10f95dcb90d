"""The rounds in which tenants take turns (`protocol §10.fair`)."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from asya.heavy.aws.pending import TenantRounds
from tests.doubles.heavy import HeavyWorld, heavy_world

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


@pytest.fixture
def rounds(world: HeavyWorld) -> TenantRounds:
    return world.services.rounds


@pytest.mark.rule("10.fair")
def test_10_a_tenant_has_a_round_for_each_envelope(rounds: TenantRounds) -> None:
    assert rounds.take("clean", {"a": 3, "b": 1}, now=NOW) == {"a": 1, "b": 1}
    assert rounds.take("clean", {"a": 1, "b": 2}, now=NOW) == {"a": 4, "b": 2}
    assert rounds.take("stats", {"a": 1}, now=NOW) == {"a": 1}


@pytest.mark.rule("10.fair")
def test_10_an_idle_tenant_begins_in_the_present_round(rounds: TenantRounds) -> None:
    rounds.take("clean", {"a": 1000, "b": 2}, now=NOW)
    rounds.reach("clean", 500)
    rounds.reach("clean", 400)  # a late dispatcher

    assert rounds.take("clean", {"a": 1, "b": 2, "c": 1}, now=NOW) == {"a": 1001, "b": 501, "c": 501}
    assert rounds.take("clean", {"b": 1, "c": 1}, now=NOW) == {"b": 503, "c": 502}


def test_the_last_rounds_expire(world: HeavyWorld, rounds: TenantRounds) -> None:
    rounds.take("clean", {"a": 1}, now=NOW)

    (item,) = world.items("ROUND#clean#")
    assert int(item["expires_at"]["N"]) == int(NOW.timestamp()) + 15 * 86400
