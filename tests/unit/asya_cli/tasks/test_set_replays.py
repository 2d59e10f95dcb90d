"""`asya replay --failed` on a mesh in memory: each failure runs again once, however often the command is typed or interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from asya.client.mesh_client import MeshClient
from asya.tasks.listing import TaskFilter
from asya_cli.errors import INTERRUPTED
from tests.doubles.command_line import asya
from tests.doubles.operated_mesh import operated_mesh

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.doubles.kit_cloud import KitCloud

ORDERS = 3


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[KitCloud]:
    """The mesh, in which some orders have failed, for a cause that is repaired since."""
    with operated_mesh(tmp_path) as running:
        running.kit.fail("bill", ValueError("the shop is closed"), times=ORDERS)
        for total in range(ORDERS):
            running.mesh.call_tool("order", b'{"country": "NO", "total": %d}' % total)
        running.kit.travel(minutes=1)
        yield running


def replays(cloud: KitCloud) -> list[str]:
    """The tasks that were replayed, one for each replay."""
    started = [task.started_by for task in cloud.mesh.iter_tasks(TaskFilter())]
    return sorted(each.name or "" for each in started if each is not None and each.kind == "replay")


@pytest.mark.rule("12.replay.again", "12.replay.key")
@pytest.mark.parametrize("has_arrived", [True, False])
def test_an_interrupted_replay_of_many_goes_on_where_it_was(
    cloud: KitCloud, monkeypatch: pytest.MonkeyPatch, has_arrived: bool
) -> None:
    """Ctrl-C during the second call, before or after the gateway has got it."""
    failed = sorted(task.id for task in cloud.mesh.iter_tasks(TaskFilter(status="failed")))
    assert len(failed) == ORDERS
    replay, calls = MeshClient.replay, list[str]()

    def interrupted(self: MeshClient, envelope_id: str, *arguments: Any) -> Any:
        calls.append(envelope_id)
        if len(calls) == 2 and has_arrived:
            replay(self, envelope_id, *arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return replay(self, envelope_id, *arguments)

    monkeypatch.setattr(MeshClient, "replay", interrupted)
    assert asya("replay", "--failed", "--state", ".asya").code == INTERRUPTED
    assert len(replays(cloud)) == (2 if has_arrived else 1)
    assert asya("replay", "--failed", "--state", ".asya").code == 0
    assert replays(cloud) == failed
    done = asya("replay", "--failed", "--state", ".asya")
    assert (done.stdout, replays(cloud)) == ("", failed)
    assert f"{ORDERS} settled failures are left out" in done.stderr


@pytest.mark.rule("12.replay.again")
def test_a_task_that_another_operator_has_replayed_meanwhile_is_named(
    cloud: KitCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay, others = MeshClient.replay, list[str]()

    def late(self: MeshClient, envelope_id: str, request: Any, key: str = "") -> Any:
        others.append(replay(self, envelope_id, request).id)
        return replay(self, envelope_id, request, key)

    monkeypatch.setattr(MeshClient, "replay", late)
    done = asya("replay", "--failed", "--state", ".asya")
    assert done.code == 0
    assert [line.partition(" → ")[2] for line in done.stdout.splitlines()] == others
    assert len(replays(cloud)) == ORDERS
