"""`Mesh.fire` with an object or an event: what a trigger reacts to, and what it does not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from asya.protocol.mesh_table import Actor, MeshTable
from asya.protocol.triggers import EventSource, ObjectSource, Trigger
from asya.testing.errors import TestKitError
from asya.testing.external import Sources

AT = datetime(2026, 11, 25, 10, tzinfo=UTC)
MESH = MeshTable(
    namespace="shop",
    actors={"a": Actor(kind="handler")},
    triggers={
        "landed": Trigger(route=("a",), objects=ObjectSource(bucket="data", prefix="raw/")),
        "partner": Trigger(route=("a",), objects=ObjectSource(bucket="partner-files")),
        "ordered": Trigger(route=("a",), event=EventSource(source=("shop",)), input="/detail/order"),
    },
)


def start(name: str, key: str | None = None, event: dict[str, Any] | None = None) -> tuple[str, str]:
    return Sources(MESH, "file:///data/").start_of(name, AT, key=key, event=event)


def test_each_object_and_each_event_is_a_new_one() -> None:
    sources = Sources(MESH, "file:///data/")
    bodies, task_ids = zip(
        *(sources.start_of("landed", AT, key="raw/a", event=None) for _ in range(3)),
        *(sources.start_of("ordered", AT, key=None, event={"detail": {"order": 1}}) for _ in range(3)),
        strict=True,
    )
    assert len(set(bodies)) == len(set(task_ids)) == 6


def test_an_event_with_an_id_of_its_own_comes_again() -> None:
    event = {"id": "once", "detail": {"order": 1}}
    assert start("ordered", event=event) == start("ordered", event=event)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "landed", "key": "clean/a"}, "'landed' does not ask for the key 'clean/a'"),
        ({"name": "ordered", "event": {}}, "there is no /detail/order in it"),
        ({"name": "ordered", "key": "raw/a"}, "key needs a trigger with s3; 'ordered' is none"),
        ({"name": "landed", "event": {}}, "event needs a trigger with event, and no key; 'landed' is none"),
        ({"name": "gone", "key": "raw/a"}, "'gone' is none"),
    ],
)
def test_what_a_trigger_does_not_react_to_is_told(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(TestKitError, match=problem):
        start(**given)
