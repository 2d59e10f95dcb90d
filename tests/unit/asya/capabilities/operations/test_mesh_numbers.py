"""Who sends to whom, and the state of a circuit."""

from datetime import UTC, datetime

import pytest

from asya.capabilities.operations.mesh_numbers import circuit_state, edges
from asya.protocol.mesh_table import Actor, Policy, Resiliency, Sink, Tool
from asya.sidecar.circuit_breaker import Circuit
from tests.doubles.envelopes import mesh

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("open_until", "state"), [(None, "closed"), (NOW.timestamp() + 1, "open"), (NOW.timestamp(), "half-open")]
)
def test_a_circuit_is_half_open_from_its_probe_on(open_until: float | None, state: str) -> None:
    assert circuit_state(Circuit(open_until=open_until), NOW) == state


def test_edges_follow_tools_rights_policies_and_hooks() -> None:
    table = mesh(
        {
            "prep": Actor(kind="handler", can_send_to=("infer", "rescue")),
            "infer": Actor(kind="handler", resiliency=Resiliency(policies={"default": Policy(then_route=("rescue",))})),
            "notify": Actor(kind="end"),
        },
        tools={"ask": Tool(description="", route=("prep", "infer"))},
        sink=Sink(hooks=("notify",)),
    )
    assert [(edge.source, edge.target, edge.tool) for edge in edges(table)] == [
        ("infer", "rescue", None),
        ("infer", "x-sink", "ask"),
        ("prep", "infer", None),
        ("prep", "infer", "ask"),
        ("prep", "rescue", None),
        ("x-sink", "notify", None),
    ]
