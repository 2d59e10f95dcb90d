"""protocol §11: pause actors that show values of the payload."""

import json

import msgspec
import pytest
from msgspec import Raw

from asya.capabilities.pauses.lambdas.wiring import build_pause
from asya.capabilities.pauses.shown import MOST_SHOWN, POINTER_CHARACTERS, shown_values
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause
from asya.tasks.received_reports import SHOWN_LIMIT
from tests.doubles.envelopes import mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pausing import FakeEvents, here, stored

PAYLOAD = {"total": 3544790567247868102, "customer": "ACME", "report": {"title": "T"}, "lines": ["x" * 250] * 100}


def run_pause(world: MeshWorld, question: Pause, times: int = 1, payload: object = PAYLOAD) -> list[str]:
    services = world.services("approve", mesh({"approve": Actor(kind="pause", pause=question)}))
    body = here(payload=payload)
    return batch_failures(build_pause(services).process(sqs_event(body, receive_counts={0: times})))


def reports(world: MeshWorld) -> set[bytes]:
    return {msgspec.json.encode(event) for event in world.gateway.events if event.status == "paused"}


def shown(world: MeshWorld) -> dict[str, str | None]:
    (report,) = (event for event in world.gateway.events if event.status == "paused")
    return {each.pointer: each.text for each in report.data.shown}


@pytest.mark.rule("11.pause.shows", "11.pause.prompt")
def test_report_and_event_show_what_the_actor_names(world: MeshWorld, bus: FakeEvents) -> None:
    question = Pause(prompt="Approve {/total} for {/customer}?", show=("/total", "/report", "/nothing"))
    assert run_pause(world, question) == []
    assert shown(world) == {"/total": "3544790567247868102", "/report": '{"title": "T"}', "/nothing": None}
    (detail,) = bus.details
    assert detail["prompt"] == "Approve 3544790567247868102 for ACME?"
    assert detail["message"].endswith(f"approve: {detail['prompt']}")
    assert detail["shown"][0] == {"pointer": "/total", "text": "3544790567247868102", "type": "number"}
    assert stored(world)["headers"]["x-asya-pause"]["prompt"] == detail["prompt"]


@pytest.mark.rule("11.pause.shown-to")
def test_an_event_has_no_payload_that_the_actor_does_not_name(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world, Pause()) == []
    assert list(shown(world)) == ["/total", "/customer", "/report", "/lines"]
    assert "shown" not in bus.details[0]


@pytest.mark.rule("11.pause.shows")
def test_a_pause_may_show_nothing(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world, Pause(show=())) == []
    assert (shown(world), "shown" in bus.details[0]) == ({}, False)


@pytest.mark.rule("11.pause.shown-once", "11.pause.redelivered")
def test_a_redelivery_to_another_version_repeats_the_report(world: MeshWorld, bus: FakeEvents) -> None:
    bus.refuses = True
    assert run_pause(world, Pause(prompt="{/customer}?", show=("/total",))) == ["message-0"]
    bus.refuses = False
    assert run_pause(world, Pause(prompt="Other", show=("/report",)), times=2) == []
    assert len(reports(world)) == 1
    assert [each["pointer"] for each in bus.details[0]["shown"]] == ["/total"]


@pytest.mark.rule("11.pause.shows")
def test_a_report_of_escapes_is_accepted(world: MeshWorld, bus: FakeEvents) -> None:
    """The bound is of text: as JSON a control character has six bytes, and an escape of one seven."""
    payload = {"a": "\x01" * 100_000, "b": '"' * 100_000, "c": ["\\" * 300] * 50}
    assert run_pause(world, Pause(show=("/a", "/b", "/c")), payload=payload) == []
    (report,) = (json.loads(each) for each in reports(world))
    assert sum(len(each["text"].encode()) for each in report["data"]["shown"]) <= 16 * 1024


@pytest.mark.rule("13.event-data")
def test_the_largest_values_that_a_mesh_file_allows_fit_into_a_report() -> None:
    pointers = [f"/{number:02}" + "\x01" * (POINTER_CHARACTERS - 3) for number in range(MOST_SHOWN)]
    payload = Raw(msgspec.json.encode({pointer[1:]: '"\\' * 10_000 for pointer in pointers}))
    values = shown_values(payload, pointers)
    assert all(each.cut for each in values)
    assert len(msgspec.json.encode(values)) <= SHOWN_LIMIT
