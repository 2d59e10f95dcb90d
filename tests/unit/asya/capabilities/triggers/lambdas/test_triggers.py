"""x-triggers starts each occurrence once, whatever dies and whatever comes twice."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from asya.capabilities.triggers.messages import slot_message
from asya.capabilities.triggers.slots import slots_between
from asya.function.hop import PROBLEM
from asya.protocol import names
from asya.protocol.triggers import Schedule
from asya.testing import Mesh
from asya.testing.messages import put
from asya.testing.services.roles import role_id

START = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
QUEUE = names.queue_name("shop", names.TRIGGERS)


def mesh_of(folder: Path, **options: Any) -> Mesh:
    return Mesh(folder / "mesh.yaml", start=START, **options)


def shown(mesh: Mesh, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = mesh.ask("GET", f"/api/v1/mesh/{run_id}", dict)
    return found


def problems(mesh: Mesh) -> list[str]:
    """What the dead letters of x-triggers say."""
    letters = mesh.cloud.queues.queues[f"{QUEUE}-dlq"].messages
    return [letter.attributes[PROBLEM]["StringValue"] for letter in letters]


@pytest.mark.rule("16.start", "16.payload", "16.owner", "13.started-by")
def test_16_a_slot_starts_the_task_of_the_trigger(folder: Path) -> None:
    """The values are of the slot in the zone of the schedule; the record has owner, tool and who started it."""
    mesh = mesh_of(folder)
    run = mesh.fire("nightly")
    assert run.result == {"day": "2026-11-26", "at": "02:00 2026-11-26T01:00:00.000000Z", "greeted": True}
    task = shown(mesh, run.id)
    assert (task["owner"], task["tool"]) == ("trigger:nightly", "greet")
    assert task["started_by"] == {"kind": "trigger", "name": "nightly", "slot": "2026-11-26T01:00:00.000000Z"}
    assert task["deadline_at"].startswith("2026-11-25T12:31:00")


@pytest.mark.rule("13.started-by")
def test_13_records_say_who_started_a_task(folder: Path) -> None:
    """A call, a replay, and a message that says nothing."""
    mesh = mesh_of(folder)
    called = mesh.call("greet", {"day": "today"})
    assert shown(mesh, called.id)["started_by"] == {"kind": "caller"}
    mesh.fail("greet", ValueError)
    failed = mesh.call("greet", {"day": "tomorrow"})
    assert shown(mesh, mesh.replay(failed).id)["started_by"] == {"kind": "replay", "name": failed.id}
    assert "started_by" not in shown(mesh, mesh.send("greet", {"day": 1}, then=["greet"]).id)


@pytest.mark.rule("16.start")
@pytest.mark.parametrize("seed", range(5))
def test_16_repeated_messages_start_one_task(folder: Path, seed: int) -> None:
    """Duplicates of SQS, several senders, and processes that die after a batch."""
    mesh = mesh_of(folder, seed=seed)
    mesh.cloud.faults.copies[names.TRIGGERS] += 3
    mesh.cloud.faults.deaths[names.TRIGGERS] += 2
    runs = {mesh.fire("hourly", at=START + timedelta(minutes=30)) for _ in range(4)}
    assert len(runs) == 1
    assert mesh.runs() == tuple(runs)
    assert len({sent.id for run in runs for sent in mesh.sent(run.id)}) == 1
    assert problems(mesh) == []


@pytest.mark.rule("16.due", "16.start")
@pytest.mark.slow
def test_16_the_sweep_starts_the_slots_of_a_day(folder: Path) -> None:
    """Each hour once, in order, and the night once."""
    mesh = mesh_of(folder)
    mesh.travel(minutes=2)  # the schedules begin
    mesh.travel(days=1)
    hours = slots_between(Schedule(cron="0 * * * *"), START + timedelta(minutes=2), mesh.now)
    started = [shown(mesh, run.id)["started_by"] for run in reversed(mesh.runs())]
    assert [each["slot"] for each in started if each["name"] == "hourly"] == [
        slot.isoformat().replace("+00:00", ".000000Z") for slot in hours
    ]
    assert len([each for each in started if each["name"] == "nightly"]) == 1
    assert {run.status for run in mesh.runs()} == {"succeeded"}


@pytest.mark.rule("16.due")
def test_16_a_sweep_that_dies_before_its_note_starts_nothing_twice(folder: Path) -> None:
    """The next sweep sends the slots again, and their keys are taken."""
    mesh = mesh_of(folder)
    mesh.travel(minutes=2)
    mesh.travel(hours=1)
    first = mesh.runs()
    # As if the last sweep had died between its send and its note.
    for run in first:
        slot = datetime.fromisoformat(shown(mesh, run.id)["started_by"]["slot"])
        put(mesh.cloud, names.TRIGGERS, slot_message("hourly", slot).decode(), sender=role_id(names.TASK_SWEEP))
    mesh.travel(minutes=5)
    assert mesh.runs() == first
    assert len(first) == 1


@pytest.mark.rule("16.messages")
@pytest.mark.parametrize(
    ("sender", "body", "problem"),
    [
        ("AIDASTRANGER", slot_message("hourly", START + timedelta(minutes=30)).decode(), "is no role of the mesh"),
        ("AIDAEVENTS", '{"trigger": "hourly", "event": "\\ud800"}', "the message has no form of S3 or EventBridge"),
        (None, "no json", "the message is of no source of triggers"),
        (None, '{"slot": ' + "[" * 9999 + "]" * 9999 + "}", "the message is of no source of triggers"),
        (None, '{"trigger": "hourly"}', "the message is of no source of triggers"),
        (None, '{"trigger": "hourly", "slot": "now"}', "the message is of no source of triggers"),
        (None, slot_message("hourly", START).decode(), "is no slot of '0 \\* \\* \\* \\*' in UTC"),
        (None, slot_message("weekly", START).decode(), "the mesh has no trigger 'weekly'"),
    ],
)
def test_16_what_is_no_slot_is_a_dead_letter(folder: Path, sender: str | None, body: str, problem: str) -> None:
    """A stranger, garbage, a time beside the schedule, and a trigger of another version."""
    mesh = mesh_of(folder)
    put(mesh.cloud, names.TRIGGERS, body, sender=sender or role_id(names.TASK_SWEEP))
    mesh.cloud.run_until_idle()
    (found,) = problems(mesh)
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(found)
    assert mesh.runs() == ()
    assert mesh.dead_letters == (body,)


@pytest.mark.rule("16.failures", "16.payload")
def test_16_a_payload_that_the_tool_refuses_is_a_dead_letter(folder: Path) -> None:
    """It names the argument; the next occurrence is not held up."""
    mesh = mesh_of(folder)
    mesh.fire("wrong")
    assert problems(mesh) == ["invalid_arguments: arguments.day of 'greet': 7 is not of type \"string\""]
    assert json.loads(mesh.dead_letters[0])["trigger"] == "wrong"
    assert mesh.fire("nightly").status == "succeeded"


@pytest.mark.rule("16.off")
@pytest.mark.slow
def test_16_a_stage_starts_nothing_unless_it_says_so(folder: Path) -> None:
    """Neither its sweep nor a slot that was sent before."""
    text = (folder / "mesh.yaml").read_text()
    (folder / "mesh.yaml").write_text(text + "stages:\n  staging: {}\n  prod: {run_triggers: true}\n")
    staging = mesh_of(folder, stage="staging")
    assert staging.fire("nightly").status == "unknown"
    staging.travel(hours=2)
    assert staging.runs() == ()
    prod = mesh_of(folder, stage="prod")
    assert prod.fire("nightly").status == "succeeded"
