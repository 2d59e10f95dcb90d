"""What `asya actors` says of an actor."""

from __future__ import annotations

import pytest

from asya.operations.mesh_numbers import ActorNumbers, CircuitState, RunNumbers
from asya_cli.actors import states


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
