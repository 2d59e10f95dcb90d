"""Single reports, and partials (`protocol §13`, `POST …/events`; `§7`, FLY)."""

import json
from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.protocol import names
from asya.protocol.mesh_table import BODY_LIMIT
from asya.tasks.aws.partials import RETENTION, PartialStore
from tests.doubles.gateway_functions import (
    ALICE,
    BOB,
    MESH,
    Gateway,
    read_task_event,
    recorded_event,
    report,
    route_event,
    signed_by,
)
from tests.doubles.tasks import at

ROUTE = "POST /api/v1/mesh/{id}/events"
REPORTER = names.role_name("other", names.REPORTS, "us-east-1")
OTHER_MESH = {"userArn": f"arn:aws:sts::123456789012:assumed-role/{REPORTER}/x", "userId": "AROAOTHER:x"}
SIDECAR = {
    "userArn": f"arn:aws:sts::123456789012:assumed-role/{names.role_name('flights', 'x-sink', 'us-east-1')}/x",
    "userId": "AROASINK:x",
}
HERE = {"prev": ["inspect-dataset"], "curr": "publish-report", "next": []}


def post(gateway: Gateway, body: object, iam: dict[str, str] | None = None, task_id: str = "t") -> tuple[int, Any]:
    return gateway.api(route_event(ROUTE, iam or ALICE, body, id=task_id))


def shown(gateway: Gateway, task_id: str = "t") -> Any:
    return gateway.api(read_task_event(task_id, ALICE))[1]


def said(gateway: Gateway, task_id: str = "t", seconds: float = 0.0) -> list[tuple[int, int, Any]]:
    partials = PartialStore(clients.dynamodb(), "asya-flights-tasks", sleep=lambda _: None)
    return [
        (part.position, message.sequence, json.loads(bytes(message.data)))
        for part in partials.read(task_id, at(seconds))
        for message in part.messages
    ]


@pytest.fixture(autouse=True)
def task(gateway: Gateway) -> None:
    report(gateway, "t", "registered")


@pytest.mark.rule("13.events.single")
def test_operators_report_on_a_task(gateway: Gateway) -> None:
    body = {"type": "status", "status": "processing", "data": {"route": HERE, "actor": "publish-report"}}
    assert post(gateway, body) == (204, None)
    found = shown(gateway)
    assert (found["status"], found["progress_percent"], found["actor"]) == ("running", 72, "publish-report")
    assert found["updated_at"].startswith("2026-11-20T09:00:00")


@pytest.mark.rule("13.events.single")
def test_operators_report_on_known_tasks_only(gateway: Gateway) -> None:
    body = {"status": "succeeded", "data": {"result": {"n": 1}}}
    for unknown in (body, {"status": "pending"}, {"type": "fly", "data": {}}):
        assert post(gateway, unknown, task_id="unknown")[0] == 404
    assert post(gateway, {"status": "pending"}) == (204, None)
    assert post(gateway, {"type": "fly", "data": {}}) == (204, None)
    assert post(gateway, body) == (204, None)
    assert (shown(gateway)["status"], shown(gateway)["result"]) == ("succeeded", {"n": 1})


@pytest.mark.rule("13.event-data")
@pytest.mark.parametrize("route", [ROUTE, "POST /api/v1/mesh/events"])
def test_a_body_whose_event_lambda_may_refuse_is_too_large(gateway: Gateway, route: str) -> None:
    body = "x" * (BODY_LIMIT + 1)
    status, content = gateway.api(route_event(route, ALICE, body, id="t"))
    assert (status, content["error"]["code"]) == (413, "too_large")
    assert gateway.api(route_event(route, ALICE, body[:-1], id="t"))[0] == 400


@pytest.mark.rule("13.statuses")
def test_a_lower_status_is_dropped_silently(gateway: Gateway) -> None:
    assert post(gateway, {"status": "failed", "data": {"reason": "Timeout"}})[0] == 204
    for late in ("succeeded", "running", "pending", "paused", "canceled"):
        assert post(gateway, {"status": late})[0] == 204
    assert (shown(gateway)["status"], shown(gateway)["reason"]) == ("failed", "Timeout")


@pytest.mark.rule("13.events.single", "13.roles")
@pytest.mark.parametrize("caller", [BOB, SIDECAR, OTHER_MESH])
def test_other_callers_cannot_report(gateway: Gateway, caller: dict[str, str]) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))
    assert post(gateway, {"status": "running"}, caller)[0] == 403


@pytest.mark.rule("13.roles")
def test_no_role_of_the_mesh_reports_by_http_even_if_every_signer_is_an_operator(gateway: Gateway) -> None:
    assert post(gateway, {"status": "succeeded"}, SIDECAR)[0] == 403
    assert gateway.api(signed_by(recorded_event("report-events"), SIDECAR))[0] == 403
    assert shown(gateway)["status"] == "running"


@pytest.mark.rule("13.roles")
def test_another_mesh_reports_if_its_role_is_named_as_an_operator(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=(f"arn:aws:iam::123456789012:role/{REPORTER}",))
    assert post(gateway, {"status": "succeeded"}, OTHER_MESH) == (204, None)


@pytest.mark.rule("13.event-data")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("[", None),
        ("[]", None),
        ({}, None),
        ({"status": "done"}, "status"),
        ({"type": "fly"}, "data"),
        ({"type": "flight", "status": "running"}, "type"),
        ({"status": "running", "id": "other"}, "id"),
        ({"status": "failed", "at": "yesterday"}, "at"),
        ({"status": "failed", "data": {"error": {"type": 1}}}, "data.error.type"),
        ({"status": "received", "data": {"route": "home"}}, "data.route"),
        ({"status": "failed", "generation": 100_000}, "generation"),
    ],
)
def test_invalid_reports_are_rejected_with_the_field(gateway: Gateway, body: object, field: str | None) -> None:
    status, content = post(gateway, body)
    assert (status, content["error"]["code"], content["error"].get("field")) == (400, "invalid_report", field)


UPSTREAM = {"prev": ["prep"], "curr": "infer", "next": ["post"], "status": "completed", "duration_ms": 12}
"""The data of a report of the newest legacy sidecar."""


@pytest.mark.rule("14.api.reports")
@pytest.mark.parametrize("status", ["received", "processing", "completed"])
def test_legacy_sidecars_write_the_route_beside_the_other_fields(gateway: Gateway, status: str) -> None:
    assert post(gateway, {"type": "status", "status": status, "data": UPSTREAM | {"status": status}}) == (204, None)
    found = shown(gateway)
    assert found["route"] == {"prev": ["prep"], "curr": "infer", "next": ["post"]}
    assert (found["actor"], found["status"]) == ("infer", "running")


@pytest.mark.rule("14.api.reports")
@pytest.mark.parametrize("body", [{}, {"data": {}}, {"data": {"actor": "infer"}}, {"data": {"duration_ms": 12}}])
@pytest.mark.parametrize("status", ["received", "processing", "completed"])
def test_a_progress_report_without_a_route_is_about_the_hop_of_the_task(
    gateway: Gateway, status: str, body: dict[str, object]
) -> None:
    post(gateway, {"status": "received", "data": UPSTREAM})
    assert post(gateway, {"type": "status", "status": status, **body}) == (204, None)
    assert shown(gateway)["route"] == {"prev": ["prep"], "curr": "infer", "next": ["post"]}


@pytest.mark.rule("14.api.reports")
def test_a_late_report_without_a_route_is_about_the_actor_that_it_names(gateway: Gateway) -> None:
    post(gateway, {"status": "received", "data": UPSTREAM})
    assert post(gateway, {"status": "completed", "data": {"actor": "prep", "duration_ms": 5}}) == (204, None)
    hops = gateway.api(route_event("GET /api/v1/mesh/{id}/timeline", ALICE, None, id="t"))[1]["items"]
    assert [(hop["actor"], hop.get("duration_ms")) for hop in hops] == [("prep", 5.0), ("infer", 12.0)]


@pytest.mark.rule("14.api.reports")
@pytest.mark.parametrize("error", ["no stock", {"message": "no stock"}])
def test_an_error_may_be_text(gateway: Gateway, error: object) -> None:
    data = {"id": "t", "status": "failed", "error": error, "timestamp": "2026-11-20T09:00:00Z"}
    assert post(gateway, {"type": "status", "status": "failed", "data": data}) == (204, None)
    found = shown(gateway)
    assert (found["status"], found["error"]["type"], found["error"]["message"]) == ("failed", "Error", "no stock")


@pytest.mark.rule("14.api.reports")
def test_a_report_without_a_route_on_an_unknown_task_is_refused(gateway: Gateway) -> None:
    assert post(gateway, {"status": "completed"}, task_id="unknown")[0] == 404


@pytest.mark.rule("13.events.fly")
def test_partials_are_stored_in_order_and_change_no_record(gateway: Gateway) -> None:
    batch = signed_by(recorded_event("report-events"), ALICE) | {
        "body": json.dumps(
            [
                {"id": "t", "type": "fly", "at": "2026-11-20T09:00:01Z", "position": position, "sequence": number,
                 "data": {"text": f"{position}.{number}"}}
                for position in (1, 0)
                for number in (2, 0, 1, 2)
            ]
        )
    }  # fmt: skip
    before = shown(gateway)
    status, content = gateway.api(batch)
    assert (status, {item["status"] for item in content["items"]}, len(content["items"])) == (200, {204}, 8)
    assert gateway.api(batch)[0] == 200
    assert shown(gateway) == before
    assert said(gateway) == [(p, n, {"text": f"{p}.{n}"}) for p in (0, 1) for n in (0, 1, 2)]
    assert said(gateway, seconds=RETENTION + 1) == []


@pytest.mark.rule("13.events.fly")
def test_partials_of_one_batch_cost_one_write(gateway: Gateway) -> None:
    partials = [
        {"id": "t", "type": "fly", "at": "2026-11-20T09:00:01Z", "sequence": n, "data": {"n": n}} for n in range(100)
    ]
    before = clients.dynamodb().scan(TableName="asya-flights-tasks")["Count"]
    assert set(gateway.write_reports(partials)) == {204}
    assert clients.dynamodb().scan(TableName="asya-flights-tasks")["Count"] == before + 1
    assert [n for _, n, _ in said(gateway)] == list(range(100))


def test_many_large_partials_are_stored(gateway: Gateway) -> None:
    partials = [
        {"id": "t", "type": "fly", "at": "2026-11-20T09:00:01Z", "sequence": n, "data": {"x": "y" * 60_000}}
        for n in range(20)
    ]
    assert set(gateway.write_reports(partials)) == {204}
    assert [n for _, n, _ in said(gateway)] == list(range(20))


def test_reading_continues_after_a_batch(gateway: Gateway) -> None:
    for number in range(3):
        post(gateway, {"type": "fly", "data": {"n": number}, "position": number})
    partials = PartialStore(clients.dynamodb(), "asya-flights-tasks", sleep=lambda _: None)
    first, *rest = partials.read("t", at(0))
    assert list(partials.read("t", at(0), after=first.key)) == rest
    assert [part.position for part in rest] == [1, 2]


def test_partials_without_a_table_are_to_be_sent_again(gateway: Gateway) -> None:
    clients.dynamodb().delete_table(TableName="asya-flights-tasks")
    assert post(gateway, {"type": "fly", "data": {}})[0] == 503
    assert post(gateway, {"status": "running"})[0] == 503
