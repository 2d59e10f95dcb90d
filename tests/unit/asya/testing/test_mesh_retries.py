"""A whole mesh shows what it retries, as the gateway on AWS does (`protocol §13.retry`)."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from asya.tasks.failures import FailureList
from asya.tasks.listing import TaskList
from asya.tasks.view import TaskView
from asya.testing import Mesh

MESH = """
namespace: shop
code: handlers
actors:
  charge:
    handler: cards.charge
    resiliency:
      policies: {default: {max_attempts: 3, backoff: constant, initial_delay: 30h, max_interval: 48h}}
"""
HANDLERS = """
CALLS = []


def charge(payload):
    CALLS.append(payload["card"])
    if CALLS.count(payload["card"]) < payload["fails"]:
        raise ConnectionError(f"call {len(CALLS)} refused")
    return payload
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "cards.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def view(mesh: Mesh, run_id: str) -> TaskView:
    task: TaskView = mesh.ask("GET", f"/api/v1/mesh/{run_id}", TaskView)
    return task


@pytest.mark.rule("13.retry", "8.retry.days")
@pytest.mark.slow
def test_a_task_shows_each_retry_until_an_attempt_succeeds(mesh: Mesh) -> None:
    run = mesh.send("charge", {"card": "a", "fails": 3})
    mesh.send("charge", {"card": "b", "fails": 1})
    for attempt in (1, 2):
        task = view(mesh, run.id)
        assert (task.status, task.attempt) == ("running", attempt)
        assert task.retry is not None
        assert (task.retry.attempt, task.retry.max_attempts) == (attempt, 3)
        assert (task.retry.error.type, task.retry.next_at) == ("ConnectionError", task.waiting_until)
        listed = mesh.ask("GET", "/api/v1/mesh?retrying=true", TaskList)
        assert [(each.id, each.retry) for each in listed.items] == [(run.id, task.retry)]
        groups = mesh.ask("GET", "/api/v1/operations/failures?retrying=true", FailureList)
        assert [(group.actor, group.error, group.count) for group in groups.items] == [
            ("charge", "ConnectionError: call # refused", 1)
        ]
        found = mesh.ask("GET", f"/api/v1/mesh?{urlencode({'error': groups.items[0].error})}", TaskList)
        assert [each.id for each in found.items] == [run.id]
        mesh.travel(hours=31)
    assert run.result == {"card": "a", "fails": 3}
    assert view(mesh, run.id).retry is None
    assert mesh.ask("GET", "/api/v1/mesh?retrying=true", TaskList).items == []
    assert mesh.ask("GET", "/api/v1/operations/failures?retrying=true", FailureList).items == []
