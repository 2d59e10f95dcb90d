"""A queue sender and caller tries to lead tasks where they may not go, by routes and by replays (`protocol §1.authority`)."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.doubles.attacked_from_outside import Bank, check, message, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


def as_a_way_to_others(_: Bank) -> Iterator[str]:
    """The actor `work` may not send to `payout`, whatever crew stands between them, and whatever an override says."""
    for number, crew in enumerate(
        ([], ["x-checkpoint"], ["x-resume"], ["x-fan-in"], ["x-pause"], ["x-resume", "x-checkpoint"])
    ):
        yield message(f"way-{number}", then=[*crew, "payout"], payload={"to": "Eve"})
        yield message(f"logical-{number}", then=[*crew, "a"], headers={"x-asya-route-override": {"a": "payout"}})
        yield message(
            f"crew-{number}", then=["a", "payout"], headers={"x-asya-route-override": {"a": (crew or ["x-wait"])[0]}}
        )
    for name in (
        "x-sink",
        "x-sump",
        "x-wait",
        "x-triggers",
        "x-dispatch",
        "x-completion",
        "x-push",
        "x-reports",
        "x-ends",
        "happy-end",
    ):
        yield message(f"to-{name}", then=[name])
        yield message(
            f"over-{name}", then=["split"], headers={"x-asya-route-override": {"split": name, "": name, name: "payout"}}
        )


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "ways to others": as_a_way_to_others,
}


@pytest.mark.rule("4.entry", "1.authority")
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.slow
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    check(bank, before, name, MESSAGES[name](bank))


@pytest.mark.rule("12.replay.place")
def test_a_replay_starts_nothing_where_its_caller_may_not(bank: Bank) -> None:
    """The route of a message names an actor that it has never been at, and the gateway sends the replay there."""
    late, override = {"deadline_at": "2020-01-01T00:00:00Z"}, {"x-asya-route-override": {"a": "payout"}}
    forged: dict[str, dict[str, Any]] = {
        "at payout": {"curr": "payout"},
        "at payout, late": {"curr": "payout", "status": late},
        "at another name of payout": {"curr": "a", "headers": override},
        "at the crew": {"curr": "x-checkpoint", "then": ["payout"]},
        "at a pause": {"curr": "approve", "then": ["payout"]},
        "behind the crew": {"curr": "work", "then": ["x-checkpoint", "payout"]},
        "behind a pause": {"curr": "work", "then": ["x-pause", "payout"]},
    }
    for own_id, more in forged.items():
        bank.put(message(own_id, payload={"to": "Eve"}, **more))
    bank.mesh.cloud.run_until_idle()
    for own_id in forged:
        for body in ({}, {"hop": 0}, {"hop": 0, "force": True}, {"force": True}):
            bank.call("POST", f"/api/v1/mesh/{quote(own_id)}/replay", body)
    bank.mesh.cloud.run_until_idle()
    paid = [key for key, body in bank.mesh.objects.items() if b'"paid": {' in body and b"Eve" in body]
    assert paid == []
    status, answer = bank.call("POST", f"/api/v1/mesh/{quote('at payout')}/replay", {})
    assert (status, json.loads(answer)["error"]["code"]) == (403, "forbidden")
    for body, status in (({}, 403), ({"force": True}, 201)):
        assert bank.call("POST", f"/api/v1/mesh/{quote('at payout')}/replay", body, by="AIDATEST")[0] == status
