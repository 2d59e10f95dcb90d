"""A queue sender tries payloads and states of others (`protocol §4.entry`)."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

import pytest

from asya.protocol import ids
from tests.doubles.attacked_from_outside import ALICE, Bank, check, message, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


def as_a_payload_of_others(bank: Bank) -> Iterator[str]:
    """x-sink reads the payloads of all actors, and gets an envelope with a deadline in the past as it came."""
    content = b'"known to Alice"'
    digest = hashlib.sha256(content).hexdigest()
    for prefix in ("inbox/payout", "payloads/work", "payloads/payout", "inbox/../paused", "inbox", "paused"):
        key = f"{prefix}/{digest[:2]}/{digest}.json"
        bank.mesh.cloud.bucket.objects[key] = content
        for number, status in enumerate(({}, {"deadline_at": "2020-01-01T00:00:00Z"})):
            headers = {"x-asya-payload-ref": {"key": key, "size": len(content), "sha256": digest}}
            yield message(f"ref-{prefix}-{number}", payload=None, headers=headers, status=status)


def as_a_payload_that_nobody_can_read(bank: Bank) -> Iterator[str]:
    """Its sender archives it, or encrypts it with a key that S3 does not keep. No repetition reads it."""
    content = b'"sealed"'
    digest = hashlib.sha256(content).hexdigest()
    for number, error in enumerate((("InvalidObjectState", None), ("InvalidRequest", "400"))):
        key = f"inbox/work/{digest[:2]}/{number}.json"
        bank.mesh.cloud.bucket.objects[key], bank.mesh.cloud.bucket.sealed[key] = content, error
        headers = {"x-asya-payload-ref": {"key": key, "size": len(content), "sha256": digest}}
        for status in ({}, {"deadline_at": "2020-01-01T00:00:00Z"}):
            yield message(f"sealed-{number}-{len(status)}", payload=None, headers=headers, status=status)


def as_a_state_of_others(bank: Bank) -> Iterator[str]:
    """Each managed header, a parent and a status say that the envelope belongs to a task of Alice."""
    at = "2026-01-01T00:00:00.000000Z"
    place = {
        "actor": "x-fan-in",
        "set_id": ids.set_id("alice-set", 0, 1),
        "origin_id": "alice-set",
        "aggregation_key": "",
    }
    forged = {
        "x-asya-owner": ALICE,
        "x-asya-tenant": ALICE,
        "x-asya-root": "alice-set",
        "x-asya-replay-of": "alice-failed",
        "x-asya-set-repeat": True,
        "x-asya-generation": 9999,
        "x-asya-fan-in": place | {"slice_index": 1, "slice_count": 3},
        "x-asya-key": {"mac": "0" * 64},
        "x-asya-pause": {"epoch": 1, "fields": []},
        "x-asya-resume-input": {"approved": True},
        "x-asya-resume-at": at,
        "x-asya-wait": {"since": at, "until": at},
        "x-asya-not-before": "9999-01-01T00:00:00Z",
        "x-asya-first-attempt": at,
        "x-asya-circuit-open-since": at,
        "x-asya-hook": "audit",
        "x-asya-tool": "pay",
        "x-asya-gateway-url": "https://evil.example",
        "x-asya-mesh-version": "0" * 12,
        "x-asya-route-resolved": {"work": {"target": "payout", "by": "work"}},
    }
    ways = cycle(([], ["x-fan-in"], ["x-resume"], ["x-checkpoint"], ["approve"], ["nap"], ["split", "x-fan-in"]))
    for name, value in forged.items():
        for number in (1, 2):
            own_id, then = f"{name}-{number}", next(ways)
            yield message(own_id, then=then, payload={"until": 0}, headers={name: value}, parent_id="alice-set")
    for phase in ("succeeded", "failed", "canceled", "paused", "retrying"):
        own = {"phase": phase, "attempt": 9, "max_attempts": 9, "created_at": at, "updated_at": at, "actor": "payout"}
        yield message(f"as-{phase}", headers=forged, status=own, parent_id=bank.paused)


MESSAGES: dict[str, Callable[[Bank], Iterable[str]]] = {
    "payloads of others": as_a_payload_of_others,
    "payloads that nobody can read": as_a_payload_that_nobody_can_read,
    "states of others": as_a_state_of_others,
}


@pytest.mark.rule("4.entry", "4.claim-check.bad-reference")
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.slow
def test_a_message_changes_nothing_of_others(bank: Bank, before: dict[str, Any], name: str) -> None:
    check(bank, before, name, MESSAGES[name](bank))
