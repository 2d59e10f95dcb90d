"""The test kit: dead letters wait, and are sent again."""

from pathlib import Path

import pytest

from asya.testing import Mesh, RefusedError


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


@pytest.mark.slow
def test_a_dead_letter_is_redriven(mesh: Mesh) -> None:
    mesh.kill_during("ship")
    run = mesh.send("ship", {"total": 3}, then=["bill"])
    mesh.travel(minutes=30)
    assert (run.status, [error.type for error in run.errors], len(mesh.dead_letters)) == (
        "failed",
        ["DeliveryExhausted"],
        1,
    )

    assert [each.id for each in mesh.redrive("ship")] == [run.id]

    assert (run.result["shipped"], run.result["billed"], mesh.dead_letters) == (True, True, ())
    assert mesh.redrive("ship") == ()


@pytest.mark.slow
def test_a_refused_dead_letter_stays(mesh: Mesh) -> None:
    mesh.kill_during("ship")
    run = mesh.send("ship", {}, timeout=60)
    mesh.travel(minutes=30)
    assert run.status == "failed"
    with pytest.raises(RefusedError, match="its deadline has passed"):
        mesh.redrive("ship")
    assert len(mesh.dead_letters) == 1
