"""protocol §16: backfills whose tasks pause, on the test kit."""

from pathlib import Path

import pytest

from asya.capabilities.triggers.operators.answers import BackfillView
from asya.testing import Mesh

MESH = """
namespace: shop
code: handlers
actors:
  approve: {kind: pause, pause: {fields: [{name: approved, type: boolean}]}}
  sell: {handler: shop.sell}
triggers:
  nightly: {cron: "0 2 * * *", route: [approve, sell], payload: {day: "{date}"}}
"""
BEGUN = {"trigger": "nightly", "from": "2026-01-01", "to": "2026-01-05"}


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text("def sell(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def backfill(mesh: Mesh, **more: object) -> BackfillView:
    view: BackfillView = mesh.ask("POST", "/api/v1/backfills", BackfillView, body=BEGUN | more)
    mesh.travel(minutes=1)
    return shown(mesh, view.id)


def shown(mesh: Mesh, backfill_id: str) -> BackfillView:
    view: BackfillView = mesh.ask("GET", f"/api/v1/backfills/{backfill_id}", BackfillView)
    return view


@pytest.mark.rule("16.backfill.paused")
@pytest.mark.slow
def test_all_slots_of_a_backfill_ask_at_once(mesh: Mesh) -> None:
    """None of them waits for the answer of another, and the pause of one starts the next before a sweep does."""
    view = backfill(mesh)
    assert (view.paused, view.waiting, [each.status for each in view.running]) == (5, 0, ["paused"] * 5)
    for task in mesh.runs("paused"):
        mesh.ask("POST", f"/api/v1/mesh/{task.id}/resume", None, body={"input": {"approved": True}})
    mesh.travel(minutes=2)
    assert (shown(mesh, view.id).state, shown(mesh, view.id).succeeded) == ("done", 5)


@pytest.mark.rule("16.backfill.paused")
def test_with_hold_paused_the_slots_ask_one_after_the_other(mesh: Mesh) -> None:
    view = backfill(mesh, hold_paused=True)
    assert (view.paused, view.waiting, len(view.running)) == (0, 4, 1)
    (task,) = mesh.runs("paused")
    mesh.ask("POST", f"/api/v1/mesh/{task.id}/resume", None, body={"input": {"approved": True}})
    mesh.travel(minutes=2)
    assert (shown(mesh, view.id).succeeded, shown(mesh, view.id).waiting) == (1, 3)
