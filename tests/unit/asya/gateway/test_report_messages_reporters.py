"""Whose reports count (`protocol §5`, reports)."""

import pytest

from asya.gateway.report_messages import sender_problem
from asya.protocol.events import PartialEvent
from asya.protocol.mesh_table import Actor, MeshTable
from tests.doubles.tasks import event

ACTORS = {name: Actor(kind="handler") for name in ("infer", "post")}
MESH = MeshTable(namespace="shop", actors=ACTORS | {"x-sink": Actor(kind="crew"), "x-checkpoint": Actor(kind="crew")})
PARTIAL = PartialEvent(id="t", at="2026-11-20T09:00:00Z", data=b"{}", actor="infer")  # type: ignore[arg-type]


@pytest.mark.rule("5.reports-of-the-sender", "4.statements.version")
@pytest.mark.parametrize(
    ("function", "queue", "problem"),
    [
        ("infer", "x-reports", None),
        ("x-completion", "x-reports", None),
        ("x-dispatch", "x-reports", None),
        ("post", "x-reports", "post may not report about infer"),
        ("x-checkpoint", "x-reports", "x-checkpoint may not report about infer"),
        (None, "x-reports", "a sender outside may not report about infer"),
        # The end actors report the ends of others.
        ("x-sink", "x-ends", None),
        (None, "x-ends", "a sender outside may not report an end"),
        ("infer", "x-ends", "infer may not report an end"),
        ("x-checkpoint", "x-ends", "x-checkpoint may not report an end"),
        # Its reports may wait for longer than it exists.
        ("removed", "x-ends", None),
    ],
)
def test_an_actor_reports_about_itself_and_the_mesh_about_all(
    function: str | None, queue: str, problem: str | None
) -> None:
    for report in (event("t", "received", 1, actor="infer"), PARTIAL):
        assert sender_problem(MESH, function, report, queue) == problem


def test_a_report_about_no_actor_is_of_no_actor() -> None:
    assert (
        sender_problem(MESH, "infer", event("t", "received", 1, actor=""), "x-reports")
        == "infer may not report about no actor"
    )
