"""What `asya actors` says of an actor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from asya.capabilities.operations.mesh_numbers import ActorNumbers, CircuitState, OpenCircuit, RunNumbers, Unread
from asya_cli.actors import explanations, states

UNREAD = Unread(
    reason="event source mapping disabled", repair="aws lambda update-event-source-mapping --uuid 7 --enabled"
)
OPEN = OpenCircuit(
    since="2026-11-25T22:10:03Z",
    next_call_at="2026-11-25T23:10:03Z",
    error="ConnectionError: no answer",
    failures=3,
    window=60,
)


def numbers(circuit: CircuitState | None = None, runs: RunNumbers | None = None) -> ActorNumbers:
    return ActorNumbers(name="bill", kind="handler", waiting=0, in_flight=0, dead_letters=0, circuit=circuit, runs=runs)


@pytest.mark.parametrize(
    ("actor", "expected"),
    [
        (numbers(), []),
        (numbers("closed"), []),
        (numbers("open"), ["circuit open"]),
        (numbers("half-open"), ["circuit half-open"]),
        (numbers(runs=RunNumbers(pending=0, running=0, lingering=0, is_drained=False)), []),
        (
            numbers(runs=RunNumbers(pending=2, running=1, lingering=1, is_drained=True)),
            ["2 envelopes for a run", "1 run", "1 lingering", "drained"],
        ),
    ],
)
def test_what_is_special_is_said(actor: ActorNumbers, expected: list[str]) -> None:
    assert list(states(actor)) == expected


def test_a_line_below_the_table_explains_what_stands_still() -> None:
    assert list(explanations(numbers("closed"))) == []
    unread = replace(numbers(), not_read=UNREAD)
    assert list(states(unread)) == ["not read: event source mapping disabled"]
    assert list(explanations(unread)) == [
        "not read: event source mapping disabled; aws lambda update-event-source-mapping --uuid 7 --enabled"
    ]
    assert list(explanations(replace(numbers("open"), open_circuit=OPEN))) == [
        "circuit open since 2026-11-25T22:10:03Z, after ConnectionError: no answer; "
        "the next call is allowed at 2026-11-25T23:10:03Z; 3 failures within 60 s open it"
    ]
