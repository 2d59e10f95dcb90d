"""The test kit: what a run tells."""

from pathlib import Path

import pytest

from asya.testing import Mesh


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


@pytest.mark.slow
def test_partials_are_what_a_handler_said_on_its_way(mesh: Mesh) -> None:
    run = mesh.send("talk", {})
    mesh.travel(hours=2)
    assert run.partials == ({"number": 0}, {"number": 1})
    assert mesh.send("bill", {}).partials == ()


def test_two_views_of_one_task_are_equal(mesh: Mesh, shop: Path) -> None:
    run = mesh.send("talk", {})
    assert {run} == set(mesh.runs())
    assert run != Mesh(shop).send("talk", {})
