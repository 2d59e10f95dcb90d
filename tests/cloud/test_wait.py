"""Tests waits for a time (protocol §11) on the deployed mesh, with IAM enforced: the sweep and a cancellation."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from asya.protocol import names
from asya.protocol.keys import safe_segment
from asya.protocol.times import format_time
from asya_cli.main import app
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.environment import now
from tests.cloud.paths_mesh import NewEnvelope, send, wait_for_final_state

if TYPE_CHECKING:
    from asya.tasks.view import TaskView

pytestmark = pytest.mark.cloud


def wait_for_wait(cloud: DeployedCloud, envelope_id: str) -> TaskView:
    """Waits until the task says until when it waits, and returns it."""

    def poll() -> TaskView | None:
        task = cloud.task(envelope_id)
        return task if task is not None and task.waiting_until is not None else None

    return until(poll, f"{envelope_id} to wait")


@pytest.mark.rule("11.wait.sent", "11.wait.kept")
def test_an_envelope_waits_until_the_sweep_sends_it(paths: DeployedCloud) -> None:
    due = now() + timedelta(seconds=20)
    payload = {"publish_at": format_time(due)}
    task_id = send(paths, NewEnvelope(["once", "embargo", "helper"], payload))
    task = wait_for_wait(paths, task_id)
    assert (task.status, task.waiting_until) == ("running", format_time(due))
    report = CliRunner().invoke(app, ["status", task_id, "--state", str(paths.state)]).stdout
    assert format_time(due) in report
    until(lambda: now() >= due or None, f"{due}")
    paths.run_scheduled(names.PAUSE_SWEEP)
    end = wait_for_final_state(paths, task_id)
    assert end.task.status == "succeeded"
    assert end.envelope["route"]["prev"] == ["once", "embargo", "helper"]
    assert (end.payload["publish_at"], end.task.waiting_until) == (format_time(due), None)


@pytest.mark.rule("11.wait.cancel")
def test_a_canceled_task_does_not_wait(paths: DeployedCloud) -> None:
    payload = {"publish_at": format_time(now() + timedelta(days=3))}
    task_id = send(paths, NewEnvelope(["embargo", "helper"], payload))
    wait_for_wait(paths, task_id)
    paths.mesh.cancel(task_id)
    paths.run_scheduled(names.PAUSE_SWEEP)
    address = f"{paths.mesh.connection.results.uri}canceled/{safe_segment(task_id)}.json"
    body = until(lambda: paths.mesh.fetch(address), f"{task_id} to be stored as canceled")
    envelope = json.loads(body)
    assert (envelope["status"]["phase"], envelope["route"]["curr"]) == ("canceled", "embargo")
    task = paths.task(task_id)
    assert task is not None
    assert (task.status, task.waiting_until) == ("canceled", None)
