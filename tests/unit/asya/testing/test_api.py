"""The test kit: the user of the test calls the gateway as an operator."""

from pathlib import Path

import pytest

from asya.testing import Mesh


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


def test_tasks_are_listed_newest_first(mesh: Mesh) -> None:
    first, second = mesh.send("bill", {}), mesh.send("crash", {})
    assert [run.id for run in mesh.runs()] == [second.id, first.id]
    assert [run.id for run in mesh.runs("failed")] == [second.id]


@pytest.mark.slow
def test_more_tasks_than_a_page_are_listed(mesh: Mesh) -> None:
    runs = [mesh.send("bill", {"n": n}) for n in range(25)]
    assert [run.id for run in mesh.runs()] == [run.id for run in reversed(runs)]


def test_the_user_of_the_test_sees_the_tasks_of_all_senders(shop: Path) -> None:
    shop.write_text("operators: [arn:aws:iam::111122223333:role/admin]\n" + shop.read_text())
    assert Mesh(shop).send("check", {"total": 1}, then=["price"]).status == "succeeded"
