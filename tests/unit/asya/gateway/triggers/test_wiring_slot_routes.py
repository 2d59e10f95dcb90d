"""A local cloud decides slots before their time; AWS does not."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from asya.capabilities.triggers.operators.answers import DecidedSlots
from asya.gateway.triggers import wiring
from asya.protocol.times import format_time
from asya.testing import Mesh, RefusedError
from asya.testing.services.queues import SqsClient
from tests.unit.asya.gateway.triggers.conftest import START
from tests.unit.asya.gateway.triggers.test_routes_trigger_routes import days_of


def allow(patch: pytest.MonkeyPatch, host: str = "http://127.0.0.1:4566") -> None:
    """Let the mesh have an endpoint."""
    meta = SimpleNamespace(endpoint_url=host)
    patch.setattr(SqsClient, "meta", meta, raising=False)


def decide(mesh: Mesh, span: timedelta) -> DecidedSlots:
    body = {"until": format_time(mesh.now + span)}
    found: DecidedSlots = mesh.ask("POST", "/api/v1/triggers", DecidedSlots, body=body)
    mesh.cloud.run_until_idle()
    return found


@pytest.mark.rule("16.local")
@pytest.mark.slow
def test_16_the_slots_of_a_day_start_now_and_never_again(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; the sweep at their time has nothing to do, and the slots after them start."""
    monkeypatch.setattr(wiring, "_TIMES", 1)
    allow(monkeypatch)
    slots, more = decide(mesh, timedelta(days=2)), decide(mesh, timedelta(days=2))
    assert (slots.has_more, more.has_more) == (True, False)
    slots.items.extend(more.items)
    assert [(slot.trigger, slot.at[:16]) for slot in slots.items] == [
        (name, f"2026-11-{day}T01:00") for day in (26, 27) for name in ("careful", "nightly")
    ]
    assert mesh.now - START < timedelta(minutes=5)
    assert {run.id for run in mesh.runs()} == {slot.id for slot in slots.items}
    assert decide(mesh, timedelta(days=2)).items == []
    mesh.travel(days=2, hours=1)
    assert len(mesh.runs()) == 4
    mesh.travel(days=1)
    assert days_of(mesh) == ["2026-11-26", "2026-11-27", "2026-11-28"]


@pytest.mark.rule("16.local")
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"until": "2026-11-24T00:00:00Z"}, "until must be in the future"),
        ({"until": "soon"}, "until: 'soon'"),
        ({}, "until"),
    ],
)
def test_16_a_wrong_time_is_refused(mesh: Mesh, monkeypatch: pytest.MonkeyPatch, body: Any, problem: str) -> None:
    """With the reason."""
    allow(monkeypatch)
    with pytest.raises(RefusedError, match=problem):
        mesh.ask("POST", "/api/v1/triggers", DecidedSlots, body=body)


@pytest.mark.rule("16.local")
def test_16_aws_refuses(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots there start at their time, or with `fire`."""
    allow(monkeypatch, "https://sqs.eu-west-1.amazonaws.com")
    with pytest.raises(RefusedError, match="only a local cloud"):
        decide(mesh, timedelta(days=1))
