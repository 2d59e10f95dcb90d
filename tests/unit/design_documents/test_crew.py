"""The examples of the document on the crew: end actors, their variables, S3 keys and the payload of a failure.

docs/decisions/departures-from-legacy.md lists the departures from it.
"""

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from asya.capabilities.legacy.envelopes import read_envelope
from asya.ends.lambdas.wiring import build_end_actor, build_sump
from asya.protocol.envelope import Route
from asya.protocol.keys import result_key
from asya.protocol.mesh_table import Actor, Sink
from asya.runtime.load import LoadError, load
from asya_infra.mesh_file import MeshFileError, load_mesh, to_table
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.mesh_file.sections import plain
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pipeline import NotAcknowledgedError
from tests.unit.design_documents.conftest import MakePipeline

BY_TIME = Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/")
ENDED_AT = "2025-11-18T14:30:45.123456Z"


def ended(phase: str, **members: Any) -> bytes:
    """An envelope that ended at the document's time."""
    return message(
        id="abc-123", status={"phase": phase, "updated_at": ENDED_AT, "created_at": "2025-11-18T14:30:00Z"}, **members
    )


# --- S3 keys


@pytest.mark.parametrize(
    ("phase", "route", "key"),
    [
        (
            "succeeded",
            {"prev": ["prep"], "curr": "text-processor", "next": []},
            "happy-asya/2025-11-18T14:30:45.123456Z/text-processor/abc-123.json",
        ),
        (
            "succeeded",
            {"prev": ["prep", "text-processor"], "curr": "", "next": []},
            "happy-asya/2025-11-18T14:30:45.123456Z/text-processor/abc-123.json",
        ),
        (
            "failed",
            {"prev": [], "curr": "failing-actor", "next": ["post"]},
            "error-asya/2025-11-18T14:30:45.123456Z/failing-actor/abc-123.json",
        ),
        (
            "succeeded",
            {"actors": ["prep", "text-processor", "post"], "current": 1},
            "happy-asya/2025-11-18T14:30:45.123456Z/text-processor/abc-123.json",
        ),
    ],
)
def test_keys(phase: str, route: Any, key: str) -> None:
    assert result_key(read_envelope(ended(phase, route=route)), BY_TIME) == key


def test_the_object_is_the_complete_envelope_formatted(pipeline: MakePipeline) -> None:
    ran = pipeline(sink=BY_TIME).send(
        "x-sink", ended("succeeded", route={"prev": ["text-processor"], "curr": "", "next": []})
    )
    (key,) = ran.world.s3.keys("results/")
    assert key == f"results/happy-asya/{ENDED_AT}/text-processor/abc-123.json"
    text = ran.world.s3.content(key).decode()
    content = json.loads(text)
    assert text == json.dumps(content, indent=2)
    assert {"id", "route", "headers", "payload"} <= content.keys()


def test_an_upload_that_fails_does_not_keep_the_end_from_being_told(pipeline: MakePipeline) -> None:
    """Stricter than the document: it is told and logged, and the message stays until it has been written."""
    ran = pipeline()
    ran.world.s3.fails = lambda action, key: action == "put"
    with pytest.raises(NotAcknowledgedError, match="stays on the queue of x-sink"):
        ran.send("x-sink", ended("succeeded", route={"prev": ["a"], "curr": "", "next": []}))
    assert [event.status for event in ran.world.gateway.events] == ["succeeded"]


# --- the payload of a failure

FAILED = {
    "id": "abc-123",
    "route": {"actors": ["preprocess", "infer", "postprocess"], "current": 1},
    "payload": {
        "error": "Runtime timeout exceeded",
        "details": {"message": "Processing timeout after 5m", "type": "TimeoutError", "traceback": "..."},
        "original_payload": {"input": "..."},
    },
}


def test_the_documents_error_envelope_is_taken_as_a_failure(world: MeshWorld) -> None:
    assert batch_failures(build_sump(world.services("x-sump")).process(sqs_event(json.dumps(FAILED)))) == []
    stored = json.loads(world.s3.content("results/sump/abc-123.json"))
    assert stored["route"] == {"prev": ["preprocess"], "curr": "infer", "next": ["postprocess"]}
    assert stored["payload"] == FAILED["payload"]
    assert [event.status for event in world.gateway.events] == ["failed"]


def test_a_timeout_leaves_in_that_shape(pipeline: MakePipeline) -> None:
    def never(_: Any) -> None:
        while True:
            pass

    ran = pipeline(
        spec={"timeout": 0.1, "options": {"failed_payload": "wrapped"}}, preprocess=lambda payload: payload, infer=never
    )
    route = {"actors": ["preprocess", "infer", "postprocess"], "current": 1}
    ran.send("infer", {"id": "abc-123", "route": route, "payload": {"input": "..."}})
    (envelope,) = ran.at("x-sump")
    assert envelope.route == Route(("preprocess",), "infer", ("postprocess",))
    payload = json.loads(bytes(envelope.payload))
    assert payload.keys() == {"error", "details", "original_payload"}
    assert payload["error"] == "Runtime timeout exceeded"
    assert payload["details"].keys() == {"message", "type", "traceback"}
    assert payload["original_payload"] == {"input": "..."}


def test_an_exception_leaves_in_that_shape_with_its_traceback(pipeline: MakePipeline) -> None:
    def fails(_: Any) -> None:
        raise KeyError("input")

    ran = pipeline(spec={"options": {"failed_payload": "wrapped"}}, infer=fails)
    ran.send("infer", {"id": "abc-123", "route": {"actors": ["infer"]}, "payload": {"input": 1}})
    for end in ("x-sink", "x-sump"):  # wrapped once, not once more at each end
        (payload,) = ran.payloads(end)
        assert payload["original_payload"] == {"input": 1}
        assert payload["details"]["type"] == "KeyError"
        assert 'raise KeyError("input")' in payload["details"]["traceback"]


# --- end actors

END: dict[str, Any] = {"kind": "end", "handler_mode": "envelope-v1", "validate": False}
# As users of that generation had it: what it needs is checked while it is imported.
OWN_END_HANDLER = """
    import os

    if os.environ.get("ASYA_HANDLER_MODE") != "envelope":
        raise RuntimeError("End handlers must run in envelope mode")
    if os.environ.get("ASYA_ENABLE_VALIDATION", "true").lower() == "true":
        raise RuntimeError("End handlers must run with validation disabled")

    ended = []


    def on_end(envelope):
        route = envelope["route"]
        last = route["actors"][min(route["current"], len(route["actors"]) - 1)]
        ended.append((envelope["id"], last, envelope["payload"]))
        return {}
"""


@pytest.fixture
def own_handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a user's own end handler."""
    (tmp_path / "own_end_handlers.py").write_text(dedent(OWN_END_HANDLER))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_end_handlers", raising=False)
    return "own_end_handlers.on_end"


def test_an_end_handler_is_imported_with_what_the_deployment_gives_it(
    world: MeshWorld, own_handler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in handler_variables(Actor(handler=own_handler, **END)).items():
        monkeypatch.setenv(name, value)
    actor = build_end_actor(world.light(lambda _: None, actor="archive", name=own_handler, **END))
    bodies = [
        message(id="abc-123", route={"actors": ["prep", "text-processor", "post"], "current": 1}, payload={"n": 1}),
        message(id="abc-124", route={"actors": ["prep"], "current": 1}),  # any state of the route
        message(id="abc-125", status=...),
    ]
    assert batch_failures(actor.process(sqs_event(*bodies))) == []
    ended = sys.modules["own_end_handlers"].ended
    assert ended[0] == ("abc-123", "text-processor", {"n": 1})
    assert [envelope_id for envelope_id, _, _ in ended] == ["abc-123", "abc-124", "abc-125"]
    assert world.targets == ["x-sink"] * 3  # nothing is routed: x-sink ends the tasks
    assert world.gateway.events == []  # no progress


@pytest.mark.rule("14.end-actor")
def test_an_end_handler_without_it_is_refused_at_import(own_handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASYA_HANDLER_MODE", raising=False)
    with pytest.raises(LoadError, match="End handlers must run in envelope mode"):
        load(own_handler)


@pytest.mark.parametrize("answer", [{}, {"ignored": True}, None, [1], "text", {1, 2}])
def test_whatever_an_end_handler_returns_is_ignored(world: MeshWorld, answer: Any) -> None:
    actor = build_end_actor(world.light(lambda _: answer, **END))
    assert batch_failures(actor.process(sqs_event(message()))) == []
    assert world.targets == ["x-sink"]
    assert json.loads(bytes(world.sent("x-sink")[0].payload)) == {"text": "hello"}


# --- deployment

VALUES = """
    namespace: shop
    actors:
      text-processor: {handler: shop.one}
    happy-end:
      enabled: true
      scaling:
        enabled: true
        minReplicas: 1
        maxReplicas: 10
        queueLength: 5
      workload:
        kind: Deployment
        template:
          spec:
            containers:
            - name: asya-runtime
              image: asya-crew:latest
              env:
              - name: ASYA_HANDLER
                value: handlers.end_handlers.happy_end_handler
              resources:
                requests:
                  cpu: 50m
                  memory: 64Mi
                limits:
                  cpu: 200m
                  memory: 128Mi
    error-end:
      enabled: true
      workload:
        template:
          spec:
            containers:
            - name: asya-runtime
              env:
              - name: ASYA_HANDLER
                value: handlers.end_handlers.error_end_handler
              - name: ASYA_S3_BUCKET
                value: my-results-bucket
              - name: ASYA_S3_ENDPOINT
                value: http://minio.storage:9000
"""


def written(folder: Path, text: str) -> Path:
    (folder / "functions/handlers").mkdir(parents=True)
    (folder / "functions/handlers/shop.py").write_text("def one(payload): return payload\n")
    path = folder / "mesh.yaml"
    path.write_text(dedent(text))
    return path


def test_the_default_values_are_settings_of_x_sink_and_x_sump(tmp_path: Path) -> None:
    mesh = load_mesh(written(tmp_path, VALUES)).mesh
    assert plain(mesh.crew.sink) == {
        "enabled": True,
        "memory": 354,  # what 200m of a processor take in Lambda
        "batch_size": 5,
        "concurrency": 10,
        "provisioned": 1,
    }
    assert mesh.crew.sump.enabled
    assert mesh.storage.results_bucket == "my-results-bucket"
    assert mesh.sink.endpoint == "http://minio.storage:9000"


@pytest.mark.rule("14.no-keys")
def test_transports_and_keys_that_there_are_no_more_are_refused(tmp_path: Path) -> None:
    text = VALUES.replace("      enabled: true\n      scaling", "      transport: rabbitmq\n      scaling").replace(
        "ASYA_S3_ENDPOINT\n                value: http://minio.storage:9000",
        "ASYA_S3_ACCESS_KEY\n                value: minioadmin",
    )
    with pytest.raises(MeshFileError) as refused:
        load_mesh(written(tmp_path, text))
    assert [problem.message for problem in refused.value.problems] == [
        "a mesh uses SQS, not rabbitmq; remove it",
        "is refused: functions have roles instead of access keys",
    ]


def test_default_prefixes_of_the_older_layout(tmp_path: Path) -> None:
    table = to_table(load_mesh(written(tmp_path, VALUES + "    sink: {layout: by-time}\n")))
    assert (table.sink.succeeded_prefix, table.sink.failed_prefix) == ("happy-asya/", "error-asya/")
