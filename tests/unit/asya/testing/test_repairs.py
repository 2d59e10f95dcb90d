"""The test kit: dead letters, replays, lists and partials, and processes that end in a call."""

from pathlib import Path

import pytest

from asya.testing import Mesh, RefusedError, TestKitError


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


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


def test_a_refused_dead_letter_stays(mesh: Mesh) -> None:
    mesh.kill_during("ship")
    run = mesh.send("ship", {}, timeout=60)
    mesh.travel(minutes=30)
    assert run.status == "failed"
    with pytest.raises(RefusedError, match="its deadline has passed"):
        mesh.redrive("ship")
    assert len(mesh.dead_letters) == 1


@pytest.mark.parametrize("failed_only", [True, False])
def test_a_failed_set_is_replayed(mesh: Mesh, failed_only: bool) -> None:
    mesh.fail("price", KeyError("total"))
    run = mesh.send("split", {"totals": [1, 2]}, then=["x-fan-in", "bill"])
    assert run.status == "failed"

    again = mesh.replay(run, failed_only=failed_only)

    assert (again.id != run.id, run.status) == (True, "failed")
    assert [item["price"] for item in again.result["prices"]] == [2, 4]
    with pytest.raises(RefusedError, match="hop 7"):
        mesh.replay(run, hop=7)


def test_tasks_are_listed_newest_first(mesh: Mesh) -> None:
    first, second = mesh.send("bill", {}), mesh.send("crash", {})
    assert [run.id for run in mesh.runs()] == [second.id, first.id]
    assert [run.id for run in mesh.runs("failed")] == [second.id]


def test_more_tasks_than_a_page_are_listed(mesh: Mesh) -> None:
    runs = [mesh.send("bill", {"n": n}) for n in range(25)]
    assert [run.id for run in mesh.runs()] == [run.id for run in reversed(runs)]


def test_the_user_of_the_test_sees_the_tasks_of_all_senders(shop: Path) -> None:
    shop.write_text("operators: [arn:aws:iam::111122223333:role/admin]\n" + shop.read_text())
    assert Mesh(shop).send("check", {"total": 1}, then=["price"]).status == "succeeded"


def test_partials_are_what_a_handler_said_on_its_way(mesh: Mesh) -> None:
    run = mesh.send("talk", {})
    mesh.travel(hours=2)
    assert run.partials == ({"number": 0}, {"number": 1})
    assert mesh.send("bill", {}).partials == ()


def test_the_end_of_a_process_by_its_handler_ends_no_test(mesh: Mesh) -> None:
    run = mesh.send("ship", {"exits": True})
    mesh.travel(minutes=30)
    assert (run.status, run.errors[0].type) == ("failed", "DeliveryExhausted")


def test_a_call_that_dies_is_repeated(mesh: Mesh) -> None:
    mesh.kill_during("check")
    run = mesh.send("check", {"total": 1}, then=["price"])
    mesh.travel(minutes=30)
    assert run.result["price"] == 2
    with pytest.raises(TestKitError, match="'approve' has no handler"):
        mesh.kill_during("approve")


def test_the_values_of_secrets_are_not_in_errors(shop: Path) -> None:
    mesh = Mesh(shop, env={"API_KEY": "a-long-secret"})
    mesh.fail("price", ValueError("refused: a-long-secret"))
    assert mesh.send("price", {"total": 1}).errors[0].message == "refused: [secret API_KEY]"
