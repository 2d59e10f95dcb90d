"""Streams of Agent2Agent (`protocol §13`, `/a2a`): the task and its new events."""

import json

import pytest

from asya.capabilities.a2a.routes import tasks
from tests.doubles.agents import result, start_task, tool_message
from tests.doubles.gateway_functions import ADMIN, ALICE, Gateway, report, route_event
from tests.doubles.tasks import at

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.stream")
def test_a_stream_holds_the_task_and_its_new_events(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    [task] = result(gateway, "SendStreamingMessage", tool_message())
    task_id = task["task"]["id"]
    assert task["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    report(gateway, task_id, "received", 1)
    assert [each["task"]["status"]["state"] for each in result(gateway, "SubscribeToTask", {"id": task_id})] == [
        "TASK_STATE_WORKING"
    ]
    monkeypatch.setattr(tasks, "WAIT_SECONDS", 20.0)
    reports = iter([("completed", {}), ("succeeded", {"result": {"n": 1}})])

    def report_next(_self: object, _seconds: float) -> None:
        status, data = next(reports)
        report(gateway, task_id, status, 2, data=data)

    monkeypatch.setattr("asya.function.lambdas.environment.RealEnvironment.sleep", report_next)
    first, *updates = result(gateway, "SubscribeToTask", {"id": task_id})
    assert first["task"]["status"]["state"] == "TASK_STATE_WORKING"
    *steps, artifact, end = updates
    assert {each["statusUpdate"]["status"]["state"] for each in steps} == {"TASK_STATE_WORKING"}
    assert artifact["artifactUpdate"]["artifact"]["parts"] == [{"data": {"n": 1}}]
    assert end["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.rule("13.a2a.stream")
def test_a_stream_of_an_ended_task_ends_with_its_status(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    report(gateway, task_id, "succeeded", 1, data={"result": 1})
    first, end = result(gateway, "SubscribeToTask", {"id": task_id})
    assert first["task"]["artifacts"][0]["artifactId"] == "result"
    assert end["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_result_of_several_lines_is_one_event(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    body = f'[{{"id": "{task_id}", "status": "succeeded", "at": "2026-11-20T09:00:01Z", "data": {{"result": {{\n\r\n"n": 1}}}}}}]'
    assert gateway.api(route_event("POST /api/v1/mesh/events", ADMIN, body))[0] == 200
    body = {"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task_id}}
    text = gateway.api(route_event("POST /a2a", ALICE, body))[1]
    events = [
        "".join(line.removeprefix("data: ") for line in event.split("\n")) for event in text.strip().split("\n\n")
    ]
    assert json.loads(events[0])["result"]["task"]["artifacts"][0]["parts"] == [{"data": {"n": 1}}]
    assert len(events) == 2


def test_a_stream_is_no_larger_than_an_answer_may_be(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = start_task(gateway)
    monkeypatch.setattr(tasks, "WAIT_SECONDS", 20.0)
    monkeypatch.setattr(tasks, "MAX_RESPONSE_CHARACTERS", 2000)
    positions = iter(range(100))

    def report_next(_self: object, _seconds: float) -> None:
        report(gateway, task_id, "received", 1, position=next(positions))

    monkeypatch.setattr("asya.function.lambdas.environment.RealEnvironment.sleep", report_next)
    assert 3 <= len(result(gateway, "SubscribeToTask", {"id": task_id})) <= 8


@pytest.mark.rule("13.a2a.stream")
@pytest.mark.slow
def test_partials_are_part_of_a_stream(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = start_task(gateway)
    report(gateway, task_id, "received", 1)
    monkeypatch.setattr(tasks, "WAIT_SECONDS", 20.0)

    def publish(_self: object, _seconds: float) -> None:
        partial = {
            "type": "fly",
            "id": task_id,
            "at": "2026-11-20T09:00:02Z",
            "actor": "inspect-dataset",
            "data": {"n": 1},
        }
        assert gateway.write_reports([partial], at(2)) == [204]
        report(gateway, task_id, "succeeded", 3)

    monkeypatch.setattr("asya.function.lambdas.environment.RealEnvironment.sleep", publish)
    items = result(gateway, "SubscribeToTask", {"id": task_id})
    messages = [each["statusUpdate"]["status"].get("message") for each in items if "statusUpdate" in each]
    assert [message["parts"] for message in messages if message] == [[{"data": {"n": 1}}]]
