"""The test kit: processes that end in a call."""

from pathlib import Path

import pytest

from asya.testing import Mesh, TestKitError


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


@pytest.mark.slow
def test_the_end_of_a_process_by_its_handler_ends_no_test(mesh: Mesh) -> None:
    run = mesh.send("ship", {"exits": True})
    mesh.travel(minutes=30)
    assert (run.status, run.errors[0].type) == ("failed", "DeliveryExhausted")


@pytest.mark.slow
def test_a_call_that_dies_is_repeated(mesh: Mesh) -> None:
    mesh.kill_during("check")
    run = mesh.send("check", {"total": 1}, then=["price"])
    mesh.travel(minutes=30)
    assert run.result["price"] == 2
    with pytest.raises(TestKitError, match="'approve' has no handler"):
        mesh.kill_during("approve")
