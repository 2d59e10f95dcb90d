"""Overlap, debounce, batches, fired slots and a backfill on the deployed mesh, with IAM enforced (protocol §16)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from asya.capabilities.triggers.operators.answers import BackfillRequest
from asya.client.errors import UnavailableError
from asya.client.triggers import Triggers
from asya.protocol import ids, names
from asya.tasks.listing import TaskFilter
from asya_cli.main import app
from tests.cloud.deployed_cloud import until

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

ANSWER = b'{"approved": true}'


def put(cloud: DeployedCloud, kind: str, **detail: Any) -> str:
    """Puts an event, waits until x-triggers has taken it, and returns the id of the task that it may start."""
    entry = {"Source": "desk", "DetailType": kind.capitalize(), "Detail": json.dumps(detail)}
    (answer,) = cloud.client("events").put_events(Entries=[entry])["Entries"]
    queue = names.queue_name("paths", names.TRIGGERS)
    until(lambda: True if cloud.message_count(queue) == 0 else None, f"{queue} to be empty")
    return ids.occurrence_id(kind, f"event {answer['EventId']}")


@pytest.fixture(scope="module", autouse=True)
def burst(paths: DeployedCloud) -> None:
    """Three events of one customer and one of another, whose silence passes while the other tests run."""
    events = paths.client("events")
    for customer, number in (("ann", 1), ("ann", 2), ("bob", 3), ("ann", 4)):
        detail = json.dumps({"customer": customer, "number": number})
        events.put_events(Entries=[{"Source": "desk", "DetailType": "Settled", "Detail": detail}])


def tasks_of(cloud: DeployedCloud, trigger: str) -> list[TaskView] | None:
    """The tasks of a trigger; None while the gateway does not answer."""
    try:
        return list(cloud.mesh.iter_tasks(TaskFilter(owner=f"trigger:{trigger}"), page_size=20))
    except UnavailableError:  # a busy machine
        return None


def wait_for(cloud: DeployedCloud, task_id: str, status: str) -> TaskView:
    """Waits until a task has a status."""

    def poll() -> TaskView | None:
        task = cloud.task(task_id)
        return task if task is not None and task.status == status else None

    return until(poll, f"{task_id} to be {status}")


@pytest.mark.rule("16.overlap.queue", "16.ends", "16.lane")
def test_16_the_end_of_a_task_starts_the_next_of_its_customer(paths: DeployedCloud) -> None:
    """Two orders of one customer run one after the other; another customer waits for nobody."""
    first, second, other = (put(paths, "queued", customer=name) for name in ("ann", "ann", "bob"))
    wait_for(paths, first, "paused")
    wait_for(paths, other, "paused")
    assert paths.task(second) is None
    paths.mesh.resume(first, ANSWER)
    wait_for(paths, second, "paused")
    assert wait_for(paths, first, "succeeded").owner == "trigger:queued"
    for task_id in (second, other):
        paths.mesh.resume(task_id, ANSWER)
        wait_for(paths, task_id, "succeeded")


@pytest.mark.rule("16.overlap.skip")
def test_16_an_occurrence_is_skipped_while_a_task_runs(paths: DeployedCloud) -> None:
    """The one after the end starts again."""
    first = put(paths, "skipped", number=1)
    wait_for(paths, first, "paused")
    put(paths, "skipped", number=2)
    paths.mesh.resume(first, ANSWER)
    wait_for(paths, first, "succeeded")
    # The notice of the end may come after the next event, which is then skipped too.
    queue = names.queue_name("paths", names.TRIGGERS)
    until(lambda: True if paths.message_count(queue) == 0 else None, f"{queue} to be empty")
    third = until(lambda: _started(paths, put(paths, "skipped", number=3)), "a start after the end")
    started = tasks_of(paths, "skipped") or []
    assert {task.id for task in started} == {first, third}
    paths.mesh.resume(third, ANSWER)


def _started(cloud: DeployedCloud, task_id: str) -> str | None:
    return task_id if cloud.task(task_id) is not None else None


@pytest.mark.rule("16.batch")
def test_16_three_events_are_one_task(paths: DeployedCloud) -> None:
    """The window closes with the third."""
    for number in (1, 2, 3):
        put(paths, "gathered", number=number)
    (task,) = until(lambda: tasks_of(paths, "gathered") or None, "the task of the batch")
    done = wait_for(paths, task.id, "succeeded")
    assert paths.envelope(done)["payload"]["items"] == [{"number": number} for number in (1, 2, 3)]


@pytest.mark.rule("16.fire", "16.calls", "16.backfill", "16.backfill.once")
def test_16_fired_slots_and_a_backfill_start_each_year_once(paths: DeployedCloud) -> None:
    """The slot of 2023 was fired before, so the backfill of five years starts four tasks."""
    triggers = Triggers(paths.mesh)
    fired = {triggers.fire("yearly", "2023-12-31T12:00", key) for key in ("a", "b")}
    (task_id,) = fired
    assert paths.wait_for_end(task_id).status == "succeeded"
    request = BackfillRequest(trigger="yearly", from_="2021-01-01", to="2025-12-31", at_once=2)
    backfill = triggers.begin(request, "years")
    assert triggers.begin(request, "years").id == backfill.id
    done = until(
        lambda: view if (view := triggers.backfill(backfill.id)).state != "running" else None, "the end of the backfill"
    )
    assert (done.state, done.total, done.before, done.succeeded, done.failed) == ("done", 5, 1, 4, 0)
    started = tasks_of(paths, "yearly") or []
    years = {paths.envelope(task)["payload"]["year"][:4] for task in started}
    assert (len(started), years) == (5, {"2021", "2022", "2023", "2024", "2025"})
    kinds = sorted(task.started_by.kind for task in started if task.started_by is not None)
    assert kinds == ["backfill"] * 4 + ["trigger"]


@pytest.mark.rule("16.local")
def test_16_a_year_of_slots_is_decided_without_waiting(paths: DeployedCloud) -> None:
    """The slots of the coming year start at once, and a repetition starts none a second time."""
    before = {task.id for task in until(lambda: tasks_of(paths, "yearly"), "the tasks of the trigger")}
    for _ in range(2):
        result = CliRunner().invoke(app, ["local", "time", "+366d", "--state", str(paths.state)])
        assert result.exit_code == 0, result.output
    queue = names.queue_name("paths", names.TRIGGERS)
    until(lambda: True if paths.message_count(queue) == 0 else None, f"{queue} to be empty")
    new = [
        task for task in until(lambda: tasks_of(paths, "yearly"), "the tasks of the trigger") if task.id not in before
    ]
    slots = [task.started_by.slot for task in new if task.started_by is not None]
    assert len(slots) == len(set(slots)) == len(new) > 0
    assert {paths.wait_for_end(task.id).status for task in new} == {"succeeded"}


@pytest.mark.rule("16.debounce", "16.window.close")
def test_16_a_burst_is_one_task_with_the_last_of_its_events(paths: DeployedCloud) -> None:
    """Each customer has a window of their own, which closes by its own message."""
    tasks = until(
        lambda: found if len(found := tasks_of(paths, "settled") or []) >= 2 else None, "a task of each customer"
    )
    payloads = [paths.wait_for_result(task.id)[1]["payload"] for task in tasks]
    assert sorted((each["customer"], each["number"]) for each in payloads) == [("ann", 4), ("bob", 3)]
