"""The API function and the function for reports, with API Gateway events over an emulated table and queue (`protocol §13`)."""

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.function.aws.outage_notes import OutageNotes
from asya.function.aws.outages import Outage
from asya.gateway.lambdas.api import api
from asya.protocol.codec import decode
from asya.protocol.mesh_table import encode_table
from asya.protocol.times import format_time
from tests.doubles.gateway_functions import (
    ALICE,
    BOB,
    MESH,
    QUEUES,
    Event,
    Gateway,
    read_task_event,
    recorded_event,
    report,
    signed_by,
    with_body,
)
from tests.doubles.gateway_functions import module_clients as _clients  # noqa: F401
from tests.doubles.tasks import at

# --- POST /api/v1/mesh ----------------------------------------------------------------------------------------------


@pytest.mark.rule("13.start")
def test_a_task_is_started_with_a_record_and_a_message(gateway: Gateway) -> None:
    status, content = gateway.api(recorded_event("start-task"))
    assert (status, set(content)) == (201, {"id"})
    [message] = gateway.messages()
    assert message["id"] == content["id"]
    assert message["route"] == {"prev": [], "curr": "inspect-dataset", "next": []}
    assert message["payload"] == {"flights": "raw/flights.csv.gz", "airlines": "raw/airlines.csv"}
    assert message["headers"]["x-asya-gateway-url"] == "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"
    assert message["headers"]["tenant"] == "acme"
    assert gateway.api(read_task_event(content["id"])) == (
        200,
        {
            "id": content["id"],
            "status": "pending",
            "progress_percent": 0,
            "actor": "inspect-dataset",
            "route": {"prev": [], "curr": "inspect-dataset", "next": []},
            "attempt": 1,
            "created_at": "2026-11-20T09:00:00.000000Z",
            "updated_at": "2026-11-20T09:00:00.000000Z",
            "deadline_at": "2026-11-20T09:45:00.000000Z",
            "generation": 0,
            "owner": "AIDACKCEVSQ6C2EXAMPLE",
            "started_by": {"kind": "caller"},
        },
    )


S3_OFF = "S3 has refused calls since 2026-11-20T09:00:05.000000Z (403 AccessDenied)"


@pytest.mark.rule("4.outage.shown")
def test_a_task_that_an_outage_may_hold_names_it(gateway: Gateway) -> None:
    task_id = gateway.api(recorded_event("start-task"))[1]["id"]
    began = at(0).timestamp()
    notes = OutageNotes(clients.dynamodb(), "asya-flights-sink")

    def problem(seconds: float) -> Any:
        return gateway.api(read_task_event(task_id), at(seconds))[1].get("problem")

    notes.add([Outage("SQS", began - 90, began - 5, "500")])
    assert problem(60) is None  # over before the task began
    notes.add([Outage("S3", began + 5, began + 50, "403 AccessDenied")])
    assert problem(9) is None  # it has just reported
    assert problem(60) == {
        "type": "Outage",
        "message": f"{S3_OFF}. A task that needs it goes on by itself when it answers",
    }
    assert problem(1100) is None  # messages have come back long ago
    report(gateway, task_id, "processing", 55)
    assert problem(70) is None  # the task has gone on


@pytest.mark.rule("4.outage.shown")
def test_a_task_without_readable_notes_is_shown(gateway: Gateway) -> None:
    task_id = gateway.api(recorded_event("start-task"))[1]["id"]
    clients.dynamodb().delete_table(TableName="asya-flights-sink")

    status, task = gateway.api(read_task_event(task_id), at(60))

    assert (status, task["status"], "problem" in task) == (200, "pending", False)


@pytest.mark.rule("13.byte-order-mark")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_the_text_of_a_call_may_begin_with_a_mark(gateway: Gateway, encoding: str) -> None:
    event = recorded_event("start-task")
    body = base64.b64encode(event["body"].encode(encoding)).decode()
    assert gateway.api(event | {"body": body, "isBase64Encoded": True})[0] == 201
    [message] = gateway.messages()
    assert message["payload"] == {"flights": "raw/flights.csv.gz", "airlines": "raw/airlines.csv"}
    assert gateway.api(with_body(event, "\ufeff{"))[1]["error"]["code"] == "invalid_json"


@pytest.mark.rule("14.api.slash")
@pytest.mark.parametrize(("name", "status"), [("start-task", 201), ("list-tasks", 200)])
def test_a_slash_before_the_query_changes_nothing(gateway: Gateway, name: str, status: int) -> None:
    event = recorded_event(name)
    context = event["requestContext"]

    def at_path(path: str) -> Event:
        key = f"{context['http']['method']} /api/v1/mesh/{{proxy+}}"
        http = context["http"] | {"path": path}
        return event | {
            "routeKey": key,
            "rawPath": path,
            "pathParameters": {"proxy": path.removeprefix("/api/v1/mesh/")},
            "requestContext": context | {"http": http},
        }

    assert gateway.api(at_path("/api/v1/mesh/"))[0] == status
    assert gateway.api(at_path("/api/v1/mesh//"))[0] in (404, 405)


def test_the_message_is_an_envelope_that_a_sidecar_reads(gateway: Gateway) -> None:
    gateway.api(recorded_event("start-task"))
    [message] = gateway.messages()
    assert decode(json.dumps(message).encode()).status is not None


def test_the_configured_url_precedes_that_of_the_request(gateway: Gateway) -> None:
    gateway.environ["ASYA_GATEWAY_URL"] = "https://status.example.org/"
    gateway.api(recorded_event("start-task"))
    assert gateway.messages()[0]["headers"]["x-asya-gateway-url"] == "https://status.example.org"


@pytest.mark.rule("13.start.idempotent")
def test_a_repeated_key_starts_once(gateway: Gateway) -> None:
    first = gateway.api(recorded_event("start-task"))
    assert gateway.api(recorded_event("start-task"), at(60)) == first
    assert len(gateway.messages()) == 1
    other = recorded_event("start-task") | {"body": '{"payload": 2}'}
    status, content = gateway.api(other)
    assert (status, content["error"]["code"], content["error"]["field"]) == (
        *(409, "idempotency_mismatch", "Idempotency-Key"),
    )


@pytest.mark.parametrize("key", ["", "x" * 256, "naïve", "a\nb"])
def test_a_malformed_key_is_refused(gateway: Gateway, key: str) -> None:
    event = recorded_event("start-task")
    event["headers"]["idempotency-key"] = key
    status, content = gateway.api(event)
    assert (status, content["error"]["field"]) == (400, "Idempotency-Key")


@pytest.mark.rule("13.start.stealth")
def test_stealth_is_not_tracked(gateway: Gateway) -> None:
    status, content = gateway.api(with_body(recorded_event("start-task"), {"headers": {"x-asya-mesh-status": "off"}}))
    assert (status, content["tracked"]) == (201, False)
    assert len(gateway.messages()) == 1
    assert gateway.api(read_task_event(content["id"]))[0] == 404


def test_a_base64_body_is_read(gateway: Gateway) -> None:
    event = with_body(recorded_event("start-task"))
    event |= {"body": base64.b64encode(b'{"payload": "\xc3\xa4"}').decode(), "isBase64Encoded": True}
    assert gateway.api(event)[0] == 201
    assert gateway.messages()[0]["payload"] == "ä"


@pytest.mark.rule("13.errors", "13.start.refused")
@pytest.mark.parametrize(
    ("body", "query", "status", "code", "field"),
    [
        ({}, {"actor": ""}, 400, "missing_actor", "actor"),
        ("{", {}, 400, "invalid_json", None),
        ({"route": {}}, {}, 400, "route_not_allowed", "route"),
        ({"next": []}, {}, 400, "route_not_allowed", "next"),
        ({"headers": 1}, {}, 400, "invalid_field", "headers"),
        ({"timeout": 1}, {}, 400, "invalid_field", "timeout"),
        ({}, {"actor": "nobody"}, 404, "unknown_actor", "actor"),
        ({}, {"actor": "x-sink"}, 404, "unknown_actor", "actor"),
        ({"payload": "x" * 262_144}, {}, 413, "too_large", None),
    ],
)
def test_refusals(
    gateway: Gateway, body: Any, query: dict[str, str], status: int, code: str, field: str | None
) -> None:
    answered, content = gateway.api(with_body(recorded_event("start-task"), body, **query))
    assert (answered, content["error"]["code"], content["error"].get("field")) == (status, code, field)
    assert content["error"]["message"]
    assert gateway.messages() == []


def test_a_payload_larger_than_a_message_goes_to_s3(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, gateway=changed(MESH.gateway, max_body=4_000_000))
    clients.s3().create_bucket(Bucket=gateway.environ["ASYA_BUCKET"])
    status, content = gateway.api(with_body(recorded_event("start-task"), {"payload": "x" * 1_100_000}))
    assert status == 201
    (sent,) = gateway.messages()
    assert (sent["id"], sent["payload"]) == (content["id"], None)
    kept = clients.s3().get_object(
        Bucket=gateway.environ["ASYA_BUCKET"], Key=sent["headers"]["x-asya-payload-ref"]["key"]
    )
    assert json.loads(kept["Body"].read()) == "x" * 1_100_000


def test_a_missing_queue_leaves_no_task(gateway: Gateway) -> None:
    clients.sqs().delete_queue(QueueUrl=QUEUES + "asya-flights-inspect-dataset")
    status, content = gateway.api(with_body(recorded_event("start-task")))
    assert (status, content["error"]["code"]) == (503, "not_sent")
    kept = clients.dynamodb().scan(TableName="asya-flights-tasks")["Items"]
    assert [item["pk"]["S"] for item in kept] == ["LISTED"]  # that an hour may hold tasks is known before it does


def test_without_its_table_nothing_is_sent(gateway: Gateway) -> None:
    clients.dynamodb().delete_table(TableName="asya-flights-tasks")
    for event in (recorded_event("start-task"), with_body(recorded_event("start-task")), recorded_event("read-task")):
        status, content = gateway.api(event)
        assert (status, content["error"]["code"]) == (503, "unavailable")
    assert gateway.messages() == []


# --- GET /api/v1/mesh/{id}, /health, and what is not there ----------------------------------------------------------


def test_an_unknown_task_is_not_found(gateway: Gateway) -> None:
    status, content = gateway.api(recorded_event("read-task"))
    assert (status, content["error"]["code"], content["error"]["field"]) == (404, "not_found", "id")


@pytest.mark.rule("13.owner")
def test_a_task_of_another_owner_is_not_found(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))
    started = gateway.api(signed_by(with_body(recorded_event("start-task")), ALICE))[1]["id"]
    assert gateway.api(read_task_event(started, ALICE))[0] == 200
    assert gateway.api(read_task_event(started, BOB)) == (
        404,
        {"error": {"code": "not_found", "message": f"there is no task '{started}'", "field": "id"}},
    )
    admin = {"userArn": "arn:aws:sts::123456789012:assumed-role/Admin/x", "userId": "AROAADMIN:x"}
    assert gateway.api(read_task_event(started, admin))[0] == 200


@pytest.mark.rule("13.signed")
def test_unsigned_calls_are_forbidden_but_for_health(gateway: Gateway) -> None:
    for name in ("start-task", "read-task"):
        assert gateway.api(signed_by(recorded_event(name), None))[0] == 403
    assert gateway.api(signed_by(recorded_event("report-events"), None))[0] == 403
    assert gateway.api(recorded_event("health")) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/mesh/a/b", 404),
        ("DELETE", "/api/v1/mesh", 405),
        ("PUT", "/api/v1/mesh/a", 405),
        ("POST", "/health", 405),
    ],
)
def test_unknown_routes_and_wrong_methods(gateway: Gateway, method: str, path: str, status: int) -> None:
    event = recorded_event("health")
    event["requestContext"]["http"] |= {"method": method, "path": path}
    answered, content = gateway.api(event)
    assert (answered, "error" in content) == (status, True)


def test_a_named_stage_is_no_part_of_the_path(gateway: Gateway) -> None:
    event = recorded_event("health")
    event["requestContext"] |= {"stage": "v1"}
    event["requestContext"]["http"]["path"] = "/v1/health"
    assert gateway.api(event)[0] == 200


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"requestContext": {"http": {"method": 1}}}])
def test_an_event_of_another_service_gets_an_error_response(gateway: Gateway, event: Event) -> None:
    status, content = gateway.api(event)
    assert (status, content["error"]["code"]) == (400, "invalid_event")


@pytest.mark.rule("13.errors")
def test_an_unexpected_error_gets_an_error_response(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("asya.gateway.routes.tasks.read_submission", broken)
    status, content = gateway.api(recorded_event("start-task"))
    assert (status, content["error"]["code"]) == (500, "internal")
    assert recorded_event("start-task")["requestContext"]["requestId"] in content["error"]["message"]
    assert "bug" not in json.dumps(content)


# --- POST /api/v1/mesh/events ---------------------------------------------------------------------------------------

TASK = recorded_event("read-task")["rawPath"].rpartition("/")[2]


@pytest.fixture
def reported(gateway: Gateway) -> None:
    """The tasks of the recorded reports have begun."""
    for task_id in {each["id"] for each in json.loads(recorded_event("report-events")["body"])}:
        report(gateway, task_id, "registered")


@pytest.mark.rule("13.event-data")
@pytest.mark.usefixtures("reported")
def test_reports_are_taken_and_shown(gateway: Gateway) -> None:
    status, content = gateway.api(recorded_event("report-events"))
    assert (status, [item["status"] for item in content["items"]]) == (200, [204] * 4)
    shown = gateway.api(recorded_event("read-task"))[1]
    assert (shown["status"], shown["progress_percent"], shown["actor"]) == ("running", 25, "inspect-dataset")
    done = json.loads(recorded_event("report-events")["body"])[3]
    shown = gateway.api(read_task_event(done["id"]))[1]
    assert (shown["status"], shown["progress_percent"]) == ("succeeded", 100)
    assert (shown["result"], shown["result_uri"]) == (done["data"]["result"], done["data"]["result_uri"])


@pytest.mark.rule("13.events.batch")
@pytest.mark.usefixtures("reported")
def test_one_malformed_report_is_named_and_the_others_taken(gateway: Gateway) -> None:
    event = recorded_event("report-events")
    items = json.loads(event["body"])
    items[1] = items[1] | {"position": -1}
    status, content = gateway.api(event | {"body": json.dumps(items)})
    assert (status, [item["status"] for item in content["items"]]) == (200, [204, 400, 204, 204])
    assert content["items"][1]["error"].startswith("position is -1")
    assert content["items"][1]["id"] == TASK


def test_operators_report_on_known_tasks_only(gateway: Gateway) -> None:
    event = recorded_event("report-events")
    assert [item["status"] for item in gateway.api(event)[1]["items"]] == [404] * 4
    assert set(gateway.write_reports(json.loads(event["body"]))) == {204}
    assert [item["status"] for item in gateway.api(event)[1]["items"]] == [204] * 4


def test_only_operators_report(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))
    status, content = gateway.api(signed_by(recorded_event("report-events"), BOB))
    assert (status, content["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("body", ["", "{}", "[", '{"id": "t"}'])
def test_invalid_batches_are_rejected(gateway: Gateway, body: str) -> None:
    status, content = gateway.api(recorded_event("report-events") | {"body": body})
    assert (status, content["error"]["code"]) == (400, "invalid_batch")


@pytest.mark.rule("13.events.batch")
def test_failures_are_shown_for_each_report(gateway: Gateway) -> None:
    clients.dynamodb().delete_table(TableName="asya-flights-tasks")
    status, content = gateway.api(recorded_event("report-events"))
    assert (status, [item["status"] for item in content["items"]]) == (200, [503] * 4)


def test_the_entry_points_build_themselves(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_started", None)
    (Path(gateway.environ["LAMBDA_TASK_ROOT"]) / "mesh.json").write_bytes(encode_table(MESH))
    assert api(recorded_event("health"), None)["statusCode"] == 200
    assert api(recorded_event("report-events"), None)["statusCode"] == 200
    started = json.loads(api(recorded_event("start-task"), None)["body"])["id"]
    shown = json.loads(api(read_task_event(started), None)["body"])
    assert shown["created_at"] <= format_time(datetime.now().astimezone())
