"""What a sender may say of tasks of others (protocol §4.entry, §5) on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from asya.protocol import ids, names
from asya.protocol.keys import refused_reports_key
from tests.cloud.deployed_cloud import until
from tests.cloud.gateway_tasks import TERMINAL, read_task, start, wait_for_end

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


def ended(caller: ApiCaller, task_id: str) -> Any:
    """Waits for the end of a task that has no record yet; returns the task."""

    def poll() -> Any:
        status, task = caller.call("GET", f"/api/v1/mesh/{task_id}")
        return task if status == 200 and task["status"] in TERMINAL else None

    return until(poll, f"task {task_id} to end")


def send(caller: ApiCaller, *messages: tuple[str, str]) -> list[str]:
    """Sends messages to queues by the role of an actor; returns the message id or the error of each."""
    results: list[str] = wait_for_end(caller, start(caller, "send", {"messages": messages}))["result"]["results"]
    return results


def envelope(task_id: str, **members: Any) -> str:
    """A whole envelope at `echo`."""
    known = {"id": task_id, "route": {"prev": [], "curr": "echo", "next": []}, "payload": {"n": 2}}
    return json.dumps(known | members)


@pytest.mark.rule("4.entry.reserved", "4.entry.ends")
def test_a_raw_message_changes_no_task_of_others(gateway: DeployedCloud, alice: ApiCaller, operator: ApiCaller) -> None:
    """The operator may send to every queue, and is no role of the mesh."""
    theirs = start(alice, "echo", {"n": 1})
    before = wait_for_end(alice, theirs)
    at = before["updated_at"]
    status = {"phase": "succeeded", "reason": "Completed", "actor": "echo", "created_at": at, "updated_at": at}
    forged = envelope(theirs, parent_id="order-1", headers={"x-asya-generation": 9999}, status=status)
    refused = [gateway.send_raw(actor, forged) for actor in ("echo", "x-sink")]
    gateway.send_raw("x-sump", forged)
    for message_id in refused:
        task = ended(operator, ids.id_of_message(message_id))
        assert (task["status"], task["reason"]) == ("failed", "ParseError")
    assert read_task(alice, theirs) == before


@pytest.mark.rule("4.entry", "4.entry.claim")
def test_an_id_belongs_to_the_first_sender(gateway: DeployedCloud, alice: ApiCaller, operator: ApiCaller) -> None:
    own = str(uuid4())
    gateway.send_raw("echo", envelope(own, parent_id="order-1", headers={"x-asya-generation": 9999}))
    before = ended(operator, own)
    assert (before["status"], before.get("generation", 0), before.get("parent_id")) == ("succeeded", 0, None)
    queue = names.queue_name("gateway", "echo")
    (message_id,) = send(alice, (queue, envelope(own, payload={"n": 3})))
    task = ended(operator, ids.id_of_message(message_id))
    assert (task["status"], task["reason"]) == ("failed", "ParseError")
    assert read_task(operator, own) == before


@pytest.mark.rule("1.authority", "11.resume.sender")
def test_the_crew_leads_an_actor_only_where_it_may_send(alice: ApiCaller, operator: ApiCaller) -> None:
    def sent(queue: str, *route: str) -> tuple[str, str]:
        task_id = str(uuid4())
        way = {"prev": ["send-narrowly"], "curr": route[0], "next": route[1:]}
        return names.queue_name("gateway", queue), envelope(task_id, route=way)

    ways = {
        ("probe",): None,
        ("x-checkpoint", "probe"): "failed",
        ("x-resume", "probe"): "failed",
        ("x-resume", "x-checkpoint", "probe"): "failed",
        ("x-checkpoint", "echo"): "succeeded",
    }
    messages = {way: sent(way[0], *way) for way in ways}
    started = start(alice, "send-narrowly", {"messages": list(messages.values())})
    results = wait_for_end(alice, started)["result"]["results"]
    assert [result == "AccessDenied" for result in results] == [end is None for end in ways.values()]
    for way, end in ways.items():
        if end is not None:
            task = ended(operator, json.loads(messages[way][1])["id"])
            assert (way, task["status"]) == (way, end)
            assert end == "succeeded" or task["reason"] == "RouteMismatch"


@pytest.mark.rule("5.reports-of-the-sender", "5.ends-of-the-crew", "4.keys.checked")
def test_an_actors_role_reports_about_its_own_actor_and_tasks_that_it_holds(
    gateway: DeployedCloud, alice: ApiCaller, operator: ApiCaller
) -> None:
    task_ids = {actor: str(uuid4()) for actor in ("echo", "send")}
    at = wait_for_end(alice, start(alice, "echo"))["updated_at"]

    def report(actor: str, **members: Any) -> str:
        data = {"actor": actor, "route": {"prev": [], "curr": actor, "next": []}, "attempt": 1}
        event = {"id": task_ids[actor], "status": "received", "at": at, "position": 0, "data": data}
        return json.dumps([event | members])

    reports, ends = (names.queue_name("gateway", queue) for queue in names.REPORT_QUEUES)
    foreign, end, keyless = send(
        alice, (reports, report("echo")), (ends, report("send", status="succeeded")), (reports, report("send"))
    )
    assert end == "AccessDenied"
    s3, bucket = gateway.client("s3"), gateway.mesh.connection.data.bucket

    def refused(message_id: str) -> str | None:
        try:
            return str(s3.get_object(Bucket=bucket, Key=refused_reports_key(message_id))["Body"].read())
        except s3.exceptions.NoSuchKey:
            return None

    problems = {foreign: "send may not report about echo", keyless: "it bears no x-asya-key"}
    for message_id, problem in problems.items():
        assert problem in until(lambda sent=message_id: refused(sent), f"report {message_id} to be refused")
    assert {operator.call("GET", f"/api/v1/mesh/{each}")[0] for each in task_ids.values()} == {404}
