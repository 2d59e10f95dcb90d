"""x-triggers and the messages of S3 and EventBridge: each occurrence starts by itself, and what cannot start is a dead letter."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from asya.capabilities.triggers.lambdas.starts import OccurrenceStarts
from asya.capabilities.triggers.occurrences import Occurrence
from asya.function.aws.failed_messages import PROBLEM
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.testing import Mesh
from asya.testing.messages import put
from asya.testing.services.roles import role_id

QUEUE = names.queue_name("shop", names.TRIGGERS)
MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
tools:
  strict: {description: Takes a text, route: [greet], input_schema: {type: object, properties: {size: {type: string}}}}
triggers:
  a-strict: {tool: strict, s3: {bucket: data, prefix: raw/}}
  b-free: {route: [greet], s3: {bucket: data, prefix: raw/}}
  off: {route: [greet], enabled: false, s3: {bucket: data, prefix: raw/}}
  first: {route: [greet], s3: {bucket: data, prefix: both/}}
  second: {route: [greet], s3: {bucket: data, prefix: both/}}
  ordered: {route: [greet], event: {source: [shop]}, input: /detail}
"""


@pytest.fixture
def mesh(folder: Path) -> Mesh:
    (folder / "mesh.yaml").write_text(MESH)
    return Mesh(folder / "mesh.yaml")


def problems(mesh: Mesh) -> list[str]:
    letters = mesh.cloud.queues.queues[f"{QUEUE}-dlq"].messages
    return [letter.attributes[PROBLEM]["StringValue"] for letter in letters]


def notification(mesh: Mesh, key: str) -> dict[str, Any]:
    written = {"key": f"{str(mesh.data).lstrip('/')}/{key}", "size": 1, "eTag": "e", "sequencer": "0A"}
    s3 = {"bucket": {"name": ""}, "object": written}
    return {"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-11-25T10:00:00.000Z", "s3": s3}]}


def tell(mesh: Mesh, message: Any) -> None:
    """As S3 and EventBridge do, whose senders are no roles of the mesh."""
    put(mesh.cloud, names.TRIGGERS, json.dumps(message), sender="AIDAOFAWS")
    mesh.travel(minutes=1)


@pytest.mark.rule("16.objects.each", "16.failures", "16.off")
def test_16_a_refused_trigger_stops_no_other(mesh: Mesh) -> None:
    """The first trigger's tool takes sizes as texts, the third is off; each notification of the object keeps one letter."""
    for _ in range(2):
        tell(mesh, notification(mesh, "raw/a.csv"))
    [run] = mesh.runs()
    assert run.result["key"] == "raw/a.csv"
    assert len(problems(mesh)) == 2
    assert all("invalid_arguments" in each and "size" in each for each in problems(mesh))


@pytest.mark.rule("16.objects.each", "16.failures")
def test_16_a_trigger_that_cannot_start_now_stops_no_other(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message comes again for the one that could not, and is no dead letter while it waits."""
    start, failures, started = OccurrenceStarts.start, [503, 503], list[str]()

    def fail(starts: OccurrenceStarts, occurrence: Occurrence) -> None:
        if occurrence.trigger == "first" and failures:
            raise ApiError(failures.pop(), "not_sent", "its queue rejected the message")
        start(starts, occurrence)
        started.append(occurrence.trigger)

    monkeypatch.setattr(OccurrenceStarts, "start", fail)
    tell(mesh, notification(mesh, "both/a.csv"))
    assert list(dict.fromkeys(started)) == ["second", "first"]
    assert [run.result["key"] for run in mesh.runs()] == ["both/a.csv"] * 2
    assert problems(mesh) == []


@pytest.mark.rule("16.events.payload", "16.failures")
def test_16_an_event_without_its_input_is_a_dead_letter(mesh: Mesh) -> None:
    event = {"id": "e", "source": "shop", "detail-type": "Placed", "time": "2026-11-25T10:00:00Z"}
    tell(mesh, {"trigger": "ordered", "event": event})
    assert problems(mesh) == ["the message starts nothing: there is no /detail in it: 'detail' is missing"]
    tell(mesh, {"trigger": "ordered", "event": {**event, "detail": {"order": 1}}})
    assert [run.result["order"] for run in mesh.runs()] == [1]


@pytest.mark.rule("16.objects.deployment")
def test_16_a_message_of_another_deployment_is_a_dead_letter_after_a_while(mesh: Mesh) -> None:
    began = mesh.now
    tell(mesh, notification(mesh, "new/a.csv"))
    assert mesh.now - began > timedelta(minutes=15)
    [problem] = problems(mesh)
    assert "no trigger of the mesh asks for" in problem
    assert mesh.runs() == ()


@pytest.mark.rule("16.objects.notifications")
def test_16_the_test_of_s3_starts_nothing(mesh: Mesh) -> None:
    tell(mesh, {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b", "RequestId": "r", "HostId": "h"})
    assert mesh.runs() == ()
    assert problems(mesh) == []
    assert mesh.cloud.queues.queues[QUEUE].messages == []


@pytest.mark.rule("16.senders.forms", "16.senders.own", "16.failures")
@pytest.mark.parametrize("function", [names.WEBHOOKS, names.CLOCK, names.REPORTS, "greet"])
def test_16_no_function_of_the_mesh_speaks_for_s3_or_a_rule(mesh: Mesh, function: str) -> None:
    """Strangers may call `x-hooks`: whatever they make of it, it starts webhooks alone. A redrive comes from the gateway."""
    event = {
        "id": "e",
        "source": "shop",
        "detail-type": "Placed",
        "time": "2026-11-25T10:00:00Z",
        "detail": {"order": 1},
    }
    forged = {"trigger": "ordered", "event": event}
    for message in (forged, notification(mesh, "raw/a.csv")):
        put(mesh.cloud, names.TRIGGERS, json.dumps(message), sender=role_id(function))
    mesh.travel(minutes=1)
    assert mesh.runs() == ()
    assert problems(mesh) == [f"{function} may not tell about objects and events"] * 2
    put(mesh.cloud, names.TRIGGERS, json.dumps(forged), sender=role_id(names.GATEWAY_API))
    mesh.travel(minutes=1)
    assert [run.result["order"] for run in mesh.runs()] == [1]
