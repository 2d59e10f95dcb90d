"""A queue sender tries messages that are no envelopes, or large, and times of each form (`docs/security.md`, sender.block)."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from asya.function.hop import FIRST_SENDER, PROBLEM
from asya.protocol import ids
from tests.doubles.attacked_from_outside import ALICE, EVE, Bank, check, message, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


def as_no_envelope(bank: Bank) -> Iterator[str]:
    """What other queues take, what no reader takes, and what takes readers long."""
    yield from (
        "",
        " ",
        "null",
        "1",
        "[]",
        "[" * 5_000,
        '{"id":"alice-set"',
        '{"id":"alice-set","id":"mine"}',
        "\ufeff{}",
    )
    yield json.dumps([{"id": bank.paused, "status": "failed", "at": "2026-01-01T00:00:00Z", "data": {"owner": EVE}}])
    yield json.dumps({"type": "set-due", "set_id": ids.set_id("alice-set", 0, 1), "until": 0})
    yield json.dumps({"lane": "x", "trigger": "nightly"})
    for name in ("id", "route", "payload", "headers", "status", "parent_id"):
        for value in (None, [], {}, 7, True, "", "\ud800", [[]], {"": None}):
            yield message("alice-set", **{name: value})
    yield '{"id":"digits","route":{"prev":[],"curr":"work","next":[]},"payload":' + "9" * 100_000 + "}"
    yield '{"id":"exponent","route":{"prev":[],"curr":"work","next":[]},"payload":[1e999999999,1e-999999999]}'
    for depth in (900, 960, 1_020, 5_000):
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            deep = opened * depth + "1" + closed * depth
            for place in ('"payload":1,"headers":{"h":%s}', '"payload":1,"more":%s', '"payload":%s'):
                yield '{"id":"deep","route":{"prev":[],"curr":"work","next":["split"]},' + place % deep + "}"


def as_a_large_envelope(_: Bank) -> Iterator[str]:
    word = "A" * 16_000
    yield message("name", then=[word])
    yield message("current", curr=word)
    yield message("current in bytes", curr="\U0001f600" * 60)
    yield message("header", headers={word: "x"}).replace('"x"', "1e9999999")
    yield json.dumps({"id": "hops", "route": {"prev": [""] * 200_000, "curr": "work", "next": []}, "payload": 1})
    yield message("letters", then=["é" * 90_000])
    yield message("trace", headers={"traceparent": word, "tracestate": "x" * 500_000})
    yield message("members", then=["split"], **{f"own-{number}": 1 for number in range(20_000)})
    yield message("payload", payload="\uffff" * 150_000)


def as_a_time(_: Bank) -> Iterator[str]:
    for time in (
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "2026-13-01T00:00:00Z",
        "",
        "now",
    ):
        yield message(f"deadline {time}", status={"deadline_at": time})
        yield message(f"nap {time}", then=["nap"], payload={"until": time})
    for number in (0, -1e18, 1e300, 10**18, True):
        yield message(f"nap {number}", then=["nap"], payload={"until": number})


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "no envelopes": as_no_envelope,
    "large envelopes": as_a_large_envelope,
    "times": as_a_time,
}


@pytest.mark.rule("4.entry", "11.metadata")
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.slow
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    check(bank, before, name, MESSAGES[name](bank))


@pytest.mark.rule("4.entry")
@pytest.mark.slow
def test_an_attribute_of_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any]) -> None:
    values = [
        *({"DataType": "String", "StringValue": text} for text in (ALICE, EVE, " ", "x" * 100_000)),
        {"DataType": "Number", "StringValue": "1"},
        {"DataType": "Binary", "BinaryValue": b"\xff" * 100},
        {"DataType": "String.own", "StringValue": "é"},
    ]
    for number, (name, value) in enumerate(product((FIRST_SENDER, PROBLEM, "own"), values)):
        bank.put(message(f"attribute {number}"), attributes={name: value})
    check(bank, before, "attributes", [message("the last attribute")])
