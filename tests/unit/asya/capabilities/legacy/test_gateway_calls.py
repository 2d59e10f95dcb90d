"""The legacy calls (`protocol §14`)."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from tests.doubles.gateway_functions import (
    ADMIN,
    ALICE,
    BOB,
    MESH,
    Gateway,
    read_task_event,
    report,
    route_event,
)
from tests.doubles.tasks import at

ROUTE = {"prev": [], "curr": "a", "next": ["b", "c"]}


@pytest.fixture(autouse=True)
def with_operators(gateway: Gateway) -> None:
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))


def read(gateway: Gateway, path: str, iam: dict[str, str] = ALICE, seconds: float = 9.0) -> tuple[int, Any]:
    return gateway.api(route_event(f"GET /{path}/{{id}}", iam, id="t"), at(seconds))


def post(gateway: Gateway, what: str, body: object, iam: dict[str, str] = ADMIN) -> tuple[int, Any]:
    return gateway.api(route_event(f"POST /envelopes/{{id}}/{what}", iam, body, id="t"), at(5))


@pytest.mark.rule("13.progress", "14.api.envelopes")
def test_14_progress_and_end_in_the_legacy_form(gateway: Gateway) -> None:
    report(gateway, "t", "registered", data={"owner": "AIDAALICE", "route": ROUTE})
    for index, status, percent in (
        (0, "received", 10),
        (0, "completed", 33),
        (2, "processing", 81),
        (1, "received", 81),
    ):
        assert post(gateway, "progress", {"status": status, "current_actor_idx": index, "more": 1}) == (204, None)
        assert read(gateway, "envelopes")[1]["progress_percent"] == percent
    shown = read(gateway, "envelopes")[1]
    assert shown["route"] == {"actors": ["a", "b", "c"], "current": 2}
    assert (shown["status"], shown["current_actor_idx"], shown["current_actor_name"]) == ("running", 2, "c")
    assert post(gateway, "final", {"status": "succeeded", "result": {"n": 1}}) == (204, None)
    shown = read(gateway, "envelopes")[1]
    assert (shown["status"], shown["progress_percent"], shown["result"]) == ("succeeded", 100, {"n": 1})
    assert gateway.api(read_task_event("t", ALICE))[1]["status"] == "succeeded"


@pytest.mark.rule("14.api.envelopes")
@pytest.mark.parametrize(
    ("error", "text"),
    [("boom", "boom"), ({"message": "boom"}, "boom"), ({"error": "boom"}, "boom"), ({"x": 1}, '{"x":1}'), (None, "")],
)
def test_14_a_failure_in_the_legacy_form(gateway: Gateway, error: object, text: str) -> None:
    report(gateway, "t", "registered", data={"route": ROUTE})
    assert post(gateway, "final", {"status": "failed", "error": error})[0] == 204
    found = gateway.api(read_task_event("t", ADMIN))[1]
    assert (found["status"], found["error"]["message"]) == ("failed", text)


@pytest.mark.rule("14.api.jobs")
@pytest.mark.parametrize(
    ("status", "job", "envelope"),
    [
        ("registered", "Running", "running"),
        ("paused", "Running", "running"),
        ("succeeded", "Succeeded", "succeeded"),
        ("failed", "Failed", "failed"),
        ("canceled", "Failed", "failed"),
    ],
)
def test_14_statuses_of_jobs_and_envelopes(gateway: Gateway, status: str, job: str, envelope: str) -> None:
    report(gateway, "t", status, data={"owner": "AIDAALICE"}, position=1)
    found = read(gateway, "jobs")[1]
    assert (found["job_id"], found["status"]) == ("t", job)
    assert read(gateway, "envelopes")[1]["status"] == envelope


def test_14_a_task_of_another_owner_is_not_found_in_any_legacy_form(gateway: Gateway) -> None:
    report(gateway, "t", "registered", data={"owner": "AIDAALICE"})
    for path in ("jobs", "envelopes"):
        assert read(gateway, path, BOB)[0] == 404
    for what, body in (
        ("final", {"status": "failed"}),
        ("progress", {"status": "received", "current_actor_idx": 0}),
    ):
        assert post(gateway, what, body, BOB)[0] == 403


@pytest.mark.parametrize(
    ("what", "body", "status", "field"),
    [
        ("progress", {"status": "received", "current_actor_idx": 3}, 400, "current_actor_idx"),
        ("progress", {"status": "received", "current_actor_idx": -1}, 400, "current_actor_idx"),
        ("progress", {"status": "received"}, 400, "current_actor_idx"),
        ("progress", {"status": "succeeded", "current_actor_idx": 0}, 400, "status"),
        ("progress", "[", 400, None),
        ("final", {"status": "running"}, 400, "status"),
        ("final", {"status": "succeeded", "result": "x" * 70_000}, 400, "result"),
        ("final", [], 400, None),
        ("final", {"status": "failed", "error": "x" * 300_000}, 413, None),
    ],
)
def test_14_malformed_reports_are_refused_naming_the_field(
    gateway: Gateway, what: str, body: object, status: int, field: str | None
) -> None:
    report(gateway, "t", "registered", data={"route": ROUTE})
    answered, content = post(gateway, what, body)
    assert (answered, content["error"].get("field")) == (status, field)


def test_14_progress_of_an_unknown_envelope_is_not_found(gateway: Gateway) -> None:
    assert post(gateway, "progress", {"status": "received", "current_actor_idx": 0})[0] == 404
    assert post(gateway, "final", {"status": "failed"})[0] == 404
