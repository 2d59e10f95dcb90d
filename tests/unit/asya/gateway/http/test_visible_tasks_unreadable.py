"""protocol §13: `unknown` is never stored; it is the status of a task with an unreadable record."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.protocol.states import TaskStatus, ViewStatus
from tests.doubles.gateway_functions import (
    ADMIN,
    ALICE,
    BOB,
    MESH,
    Gateway,
    read_task_event,
    route_event,
    signed_by,
)
from tests.unit.asya.gateway.routes.test_cancel import start

TABLE = "asya-flights-tasks"


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


def spoil(task_id: str, name: str = "status", value: Any = None) -> None:
    """Store a record as a later version might."""
    clients.dynamodb().update_item(
        TableName=TABLE,
        Key={"pk": {"S": task_id}, "sk": {"S": "record"}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value or {"S": "asleep"}},
    )


def status_written(task_id: str) -> str:
    key: Any = {"pk": {"S": task_id}, "sk": {"S": "record"}}
    return str(clients.dynamodb().get_item(TableName=TABLE, Key=key)["Item"]["status"]["S"])


@pytest.mark.rule("13.unknown")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", {"S": "asleep"}),
        ("status", {"S": "unknown"}),
        ("status", {"NULL": True}),
        ("route", {"S": "{"}),
        ("generation", {"N": "1.5"}),
        ("updated_at", {"N": "1"}),
        ("handover", {"S": "{}"}),
    ],
)
def test_a_record_that_cannot_be_read_is_shown_as_unknown(gateway: Gateway, name: str, value: Any) -> None:
    task_id = start(gateway)
    spoil(task_id, name, value)
    status, shown = gateway.api(signed_by(read_task_event(task_id), ALICE))
    assert (status, shown["id"], shown["status"], shown["progress_percent"]) == (200, task_id, "unknown", 0)
    assert gateway.api(signed_by(read_task_event(task_id), BOB))[0] == 404
    assert gateway.api(signed_by(read_task_event(task_id), ADMIN))[0] == 200


def test_without_a_readable_owner_only_operators_see_the_task(gateway: Gateway) -> None:
    task_id = start(gateway)
    spoil(task_id, "owner", {"N": "1"})
    assert gateway.api(signed_by(read_task_event(task_id), ALICE))[0] == 404
    assert gateway.api(signed_by(read_task_event(task_id), ADMIN))[1]["status"] == "unknown"


@pytest.mark.rule("13.unknown")
def test_an_unreadable_record_affects_no_other_task_and_is_never_overwritten(gateway: Gateway) -> None:
    good, bad = start(gateway), start(gateway)
    spoil(bad)
    before = status_written(bad)
    listed = gateway.api(signed_by(route_event("GET /api/v1/mesh"), ALICE))
    assert {each["id"]: each["status"] for each in listed[1]["items"]} == {good: "pending", bad: "unknown"}
    assert gateway.api(signed_by(route_event("DELETE /api/v1/mesh/{id}", id=bad), ALICE))[0] == 503
    assert gateway.write_reports([ended(good), ended(bad)]) == [204, 503]
    assert (status_written(good), status_written(bad)) == ("succeeded", before)


def ended(task_id: str) -> dict[str, Any]:
    at = "2026-11-20T09:00:01Z"
    return {"id": task_id, "type": "status", "status": "succeeded", "at": at, "data": {"actor": "publish-report"}}


@pytest.mark.rule("13.unknown")
def test_unknown_is_no_status_that_a_record_or_a_report_can_have(gateway: Gateway) -> None:
    assert set(get_args(ViewStatus)) - set(get_args(TaskStatus)) == {"unknown"}
    task_id = start(gateway)
    answer = gateway.api(route_event("POST /api/v1/mesh/{id}/events", ADMIN, {"status": "unknown"}, id=task_id))
    assert answer[0] == 400
    assert status_written(task_id) == "pending"
