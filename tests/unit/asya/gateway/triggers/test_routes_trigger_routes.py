"""Operators list, pause, resume and fire triggers; every call may be repeated."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from asya.capabilities.triggers.operators.answers import Fired, LaneView, SlotView, TriggerList, TriggerView
from asya.function.hop import PROBLEM
from asya.protocol import names
from asya.protocol.times import parse_time
from asya.testing import Mesh, RefusedError
from asya.testing.services.roles import role_id

LAST = "2026-11-25T01:00:00.000000Z"


def trigger(mesh: Mesh, name: str = "nightly", action: str = "") -> TriggerView:
    method = "POST" if action else "GET"
    found: TriggerView = mesh.ask(method, f"/api/v1/triggers/{name}{action}", TriggerView)
    return found


def fire(mesh: Mesh, name: str = "nightly", at: str | None = None) -> str:
    """Fire a trigger, and let the mesh work."""
    body = {"at": at} if at is not None else None
    task_id: str = mesh.ask("POST", f"/api/v1/triggers/{name}/fire", Fired, body=body).id
    mesh.cloud.run_until_idle()
    return task_id


def call(mesh: Mesh, method: str, path: str, body: str = "", **options: str) -> tuple[int, Any]:
    """Make a call as another caller, or with headers."""
    user = {"user_arn": options.pop("user_arn", "arn:aws:iam::123456789012:user/test"), "user_id": "AIDA"}
    response = mesh.cloud.request(method, path, body.encode(), options, **user)
    return response["statusCode"], response.get("body")


def tell(mesh: Mesh, name: str, detail: dict[str, Any]) -> None:
    """Send an event as the rule of a trigger does, and let the mesh work for ten seconds."""
    event = {"id": str(uuid4()), "source": "shop", "detail-type": "Placed", "detail": detail}
    event |= {"time": "2026-11-25T12:00:00Z", "account": "1", "region": "eu-west-1", "resources": []}
    body = json.dumps({"trigger": name, "event": event})
    mesh.cloud.queues.send(names.queue_name("shop", names.TRIGGERS), body, sender=None, by="AIDAEVENTS")
    mesh.cloud.advance(10)


def task(mesh: Mesh, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = mesh.ask("GET", f"/api/v1/mesh/{task_id}", dict)
    return found


def days_of(mesh: Mesh, name: str = "nightly") -> list[str]:
    """The days of the tasks of a trigger."""
    return sorted(run.result["day"] for run in mesh.runs() if task(mesh, run.id)["owner"] == f"trigger:{name}")


@pytest.mark.rule("16.calls.show")
def test_16_triggers_are_listed_with_their_slots(mesh: Mesh) -> None:
    """Those that are off have no next slot."""
    views = {view.name: view for view in mesh.ask("GET", "/api/v1/triggers", TriggerList).items}
    assert list(views) == [
        *("careful", "each", "gathered", "nightly", "orders", "pushed"),
        *("silent", "waiting", "wrong"),
    ]
    nightly = views["nightly"]
    assert (nightly.kind, nightly.tool, nightly.enabled, nightly.paused) == ("cron", "greet", True, False)
    assert (nightly.cron, nightly.timezone) == ("0 2 * * *", "Europe/Oslo")
    assert nightly.next == [f"2026-11-{day}T01:00:00.000000Z" for day in (26, 27, 28)]
    assert nightly.last is not None
    assert (nightly.last.at, nightly.last.status) == (LAST, None)
    assert (views["silent"].enabled, views["silent"].next, views["silent"].route) == (False, [], ("greet",))


@pytest.mark.rule("16.calls.show", "16.fire")
def test_16_a_slot_that_an_operator_fires_starts_once(mesh: Mesh) -> None:
    """Its id and key are those of the schedule's; the trigger shows the task."""
    first = fire(mesh, at="2026-11-25T02:00")
    assert fire(mesh, at="2026-11-25T01:00:00Z") == first
    (run,) = mesh.runs()
    assert (run.id, run.result) == (first, {"day": "2026-11-25"})
    shown = trigger(mesh)
    assert shown.last == SlotView(at=LAST, id=first, status="succeeded")
    assert [(each.id, each.owner) for each in shown.tasks] == [(first, "trigger:nightly")]
    assert task(mesh, first)["started_by"] == {"kind": "trigger", "name": "nightly", "slot": LAST}


@pytest.mark.rule("16.calls.show.waits")
@pytest.mark.slow
def test_16_a_trigger_with_one_lane_shows_what_waits(mesh: Mesh) -> None:
    """Behind which task, how many, and when a window closes. Idle lanes, and those of one value each, are not shown."""
    assert trigger(mesh, "waiting").lane is None
    asked = mesh.now
    for name in ("waiting", "gathered", "each"):
        for number in range(3):
            tell(mesh, name, {"customer": "ann", "number": number})
    [first] = [run.id for run in mesh.runs() if task(mesh, run.id)["owner"] == "trigger:waiting"]
    assert trigger(mesh, "waiting").lane == LaneView(running=first, queued=2)
    gathered = trigger(mesh, "gathered").lane
    assert gathered is not None
    assert (gathered.running, gathered.queued, gathered.gathered) == (None, 0, 3)
    assert timedelta(minutes=5) <= parse_time(gathered.closes or "") - asked < timedelta(minutes=10)
    assert trigger(mesh, "each").lane is None
    mesh.travel(hours=4)
    assert [trigger(mesh, name).lane for name in ("waiting", "gathered")] == [None, None]


@pytest.mark.rule("16.calls.show.waits")
def test_16_a_webhook_shows_its_url(mesh: Mesh) -> None:
    """The sender of the webhook gets this URL."""
    url = trigger(mesh, "pushed").url
    assert url is not None
    assert url.endswith("/hooks/pushed")
    assert url.startswith("https://")
    assert trigger(mesh).url is None


@pytest.mark.rule("16.fire", "16.fire.queue")
def test_16_a_call_without_a_slot_starts_a_task_for_now(mesh: Mesh) -> None:
    """A repeated call with its key starts none; the key belongs to its caller."""
    path = "/api/v1/triggers/nightly/fire"
    answers = [call(mesh, "POST", path, **{"Idempotency-Key": key}) for key in ("one", "one", "two")]
    assert [status for status, _ in answers] == [202, 202, 202]
    mesh.cloud.run_until_idle()
    assert len(mesh.runs()) == 2
    assert {run.result["day"] for run in mesh.runs()} == {"2026-11-25"}
    assert answers[0] == answers[1]
    assert len({fire(mesh), fire(mesh)}) == 2
    assert "slot" not in task(mesh, mesh.runs()[0].id)["started_by"]


@pytest.mark.rule("16.fire", "16.fire.refused")
@pytest.mark.parametrize(
    ("name", "at", "problem"),
    [
        (
            "nightly",
            "2026-11-25T03:00",
            "no slot of '0 2 .*' in Europe/Oslo; .* 2026-11-25T02:00:00.01:00 and 2026-11-26T02",
        ),
        ("nightly", "2026-11-26T02:00", "in the future"),
        ("nightly", "soon", "at should be a time such as"),
        ("nightly", "0001-01-01T00:00:00Z", "at should be a time since 1900 such as"),
        ("wrong", "2026-01-01T03:00:00Z", '7 is not of type "string"'),
        ("silent", None, "is off"),
        ("orders", None, "the trigger 'orders' has no schedule"),
        ("nightli", None, "there is no trigger 'nightli'; the triggers are: careful, each, .*, wrong"),
    ],
)
def test_16_what_starts_no_task_is_refused_with_the_reason(mesh: Mesh, name: str, at: str | None, problem: str) -> None:
    """Before anything is sent."""
    with pytest.raises(RefusedError, match=problem):
        fire(mesh, name, at)
    assert mesh.dead_letters == ()
    assert mesh.runs() == ()


@pytest.mark.rule("16.calls")
@pytest.mark.parametrize("body", ["[]", "{", '{"at": 1}', '{"when": "now"}'])
def test_16_a_wrong_body_is_refused(mesh: Mesh, body: str) -> None:
    """It never crashes."""
    status, answer = call(mesh, "POST", "/api/v1/triggers/nightly/fire", body)
    assert (status, "error" in answer) == (400, True)


@pytest.mark.rule("16.pause")
@pytest.mark.slow
def test_16_a_paused_trigger_starts_nothing_by_itself(mesh: Mesh) -> None:
    """Slots of the pause are left out; a repeated call changes nothing; an operator may fire it."""
    mesh.travel(minutes=2)  # the schedule begins
    for _ in range(2):
        paused = trigger(mesh, action="/pause")
        assert (paused.paused, paused.next) == (True, [])
    mesh.travel(days=2)
    assert {task(mesh, run.id)["owner"] for run in mesh.runs()} == {"trigger:careful"}
    fire(mesh, at="2026-11-27T02:00")
    assert days_of(mesh) == ["2026-11-27"]
    resumed = trigger(mesh, action="/resume")
    assert (resumed.paused, resumed.next[0]) == (False, "2026-11-28T01:00:00.000000Z")
    mesh.travel(days=1)
    assert days_of(mesh) == ["2026-11-27", "2026-11-28"]


@pytest.mark.rule("16.pause")
def test_16_to_resume_a_trigger_again_leaves_no_slot_out(mesh: Mesh) -> None:
    """A second call right after a slot comes before the sweep."""
    mesh.travel(minutes=2)  # the schedule begins
    trigger(mesh, action="/pause")
    trigger(mesh, action="/resume")
    mesh.cloud.advance((datetime(2026, 11, 26, 1, 0, 10, tzinfo=UTC) - mesh.now) / timedelta(seconds=1))
    trigger(mesh, action="/resume")
    mesh.travel(minutes=2)
    assert days_of(mesh) == ["2026-11-26"]


@pytest.mark.rule("16.calls")
@pytest.mark.parametrize(
    "path",
    [
        "triggers",
        "triggers/nightly",
        "triggers/nightly/fire",
        "triggers/nightly/pause",
        "triggers/nightly/resume",
        "backfills",
        "backfills/b1",
        "backfills/b1/resume",
    ],
)
def test_16_others_are_refused(mesh: Mesh, path: str) -> None:
    """A role of the mesh is no operator, and nobody is told whether there is such a trigger."""
    role = names.role_name("shop", "greet", "eu-west-1")
    arn = f"arn:aws:sts::123456789012:assumed-role/{role}/session"
    method = "POST" if path.count("/") == 2 else "GET"
    assert call(mesh, method, f"/api/v1/{path}", user_arn=arn)[0] == 403


@pytest.mark.rule("16.failures", "16.pause")
def test_16_a_redriven_letter_of_x_triggers_is_taken_again(mesh: Mesh) -> None:
    """The gateway sends it, whose role is one of the mesh."""
    queue = names.queue_name("shop", names.TRIGGERS)
    mesh.cloud.queues.send(
        queue, '{"trigger": "nightly", "slot": "2026-11-25T01:00:00Z"}', sender=None, by="AIDASTRANGER"
    )
    mesh.cloud.run_until_idle()
    assert (mesh.runs(), len(mesh.dead_letters)) == ((), 1)
    (letter,) = mesh.cloud.queues.queues[f"{queue}-dlq"].messages
    query = f"actor=x-triggers&message_id={letter.message_id}&sender={letter.sender}"
    status, _ = call(mesh, "POST", f"/api/v1/mesh/redrive?{query}", letter.body)
    mesh.cloud.run_until_idle()
    assert (status, [run.result for run in mesh.runs()]) == (200, [{"day": "2026-11-25"}])


@pytest.mark.rule("16.failures")
def test_16_x_dlq_copies_a_letter_of_x_triggers_and_logs_its_problem(mesh: Mesh) -> None:
    """Once; it stays on its queue."""
    queue, body = names.queue_name("shop", names.TRIGGERS), '{"trigger": "nightly", "slot": "now"}'
    sender = f"{role_id(names.TASK_SWEEP)}:session"
    mesh.cloud.queues.send(queue, body, sender=None, by=sender)
    mesh.travel(minutes=3)
    lines = [line for line in mesh.log if "log: dead letter" in line]
    assert len(lines) == 1
    assert "problem=the message is of no source of triggers: 'now' is no RFC 3339 time" in lines[0]
    (letter,) = mesh.cloud.queues.queues[f"{queue}-dlq"].messages
    assert mesh.objects[f"dlq/unreadable/{letter.message_id}"] == body.encode()


@pytest.mark.rule("16.pause")
def test_16_events_of_a_pause_are_kept_as_dead_letters(mesh: Mesh) -> None:
    """A redrive after the pause starts their tasks."""
    queue = names.queue_name("shop", names.TRIGGERS)
    trigger(mesh, "orders", "/pause")
    tell(mesh, "orders", {"day": "today"})
    (letter,) = mesh.cloud.queues.queues[f"{queue}-dlq"].messages
    assert "the trigger 'orders' is paused" in letter.attributes[PROBLEM]["StringValue"]
    assert mesh.runs() == ()
    trigger(mesh, "orders", "/resume")
    query = f"actor=x-triggers&message_id={letter.message_id}&sender={letter.sender}"
    assert call(mesh, "POST", f"/api/v1/mesh/redrive?{query}", letter.body)[0] == 200
    mesh.cloud.run_until_idle()
    assert [run.result for run in mesh.runs()] == [{"day": "today"}]


@pytest.mark.slow
@pytest.mark.rule("16.pause.waiting")
def test_16_what_waits_in_a_lane_starts_also_while_its_trigger_is_paused(mesh: Mesh) -> None:
    """It came before the pause. Each task waits for an hour."""
    for number in (1, 2):
        tell(mesh, "waiting", {"number": number})
    assert len(mesh.runs()) == 1
    trigger(mesh, "waiting", "/pause")
    mesh.travel(hours=3)
    assert [run.status for run in mesh.runs()] == ["succeeded", "succeeded"]
