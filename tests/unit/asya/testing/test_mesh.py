"""The test kit: a mesh in this process."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from asya.testing import Mesh, NotSucceededError, RefusedError, TestKitError
from asya_infra.mesh_file.source import MeshFileError


@pytest.fixture
def mesh(shop: Path) -> Mesh:
    return Mesh(shop)


def test_a_payload_passes_its_route(mesh: Mesh) -> None:
    run = mesh.send("check", {"total": 3}, then=["price", "bill"])

    assert run.result == {
        "total": 3,
        "currency": "EUR",
        "at_import": "EUR",
        "price": 6,
        "key": None,
        "billed": True,
    }
    assert run.actors == ("check", "price", "bill")
    assert (run.status, run.errors, run.children) == ("succeeded", (), ())
    assert repr(run) == f"<Run {run.id} succeeded: check → price → bill>"


@pytest.mark.parametrize(
    ("body", "envelope_id", "problem"),
    [
        ('{"id": "order-7"}', "order-7", "route is missing"),
        ('{"id": "order-7", "route": "check", "payload": {}}', "order-7", "route: Expected `object`"),
        ('{"id": 7}', None, "id must be a string, not a number"),
        ("no envelope", None, "the message is no JSON"),
    ],
)
def test_a_message_that_is_no_envelope_fails_under_its_own_id(
    mesh: Mesh, body: str, envelope_id: str | None, problem: str
) -> None:
    run = mesh.deliver("check", body)
    assert run.status == "failed"
    assert run.id == (envelope_id or run.id)
    assert problem in run.errors[0].message


def test_a_run_without_a_record_has_no_hops(mesh: Mesh) -> None:
    run = mesh.send("check", {"total": 3}, headers={"x-asya-mesh-status": "off"})
    assert (run.hops, repr(run)) == ((), f"<Run {run.id} unknown: no hop completed>")


def test_an_actor_alone_starts_at_the_gateway(mesh: Mesh) -> None:
    assert mesh.send("bill", {}).result == {"billed": True}


def test_a_tool_takes_what_its_schema_allows(mesh: Mesh) -> None:
    assert mesh.call("order", {"total": 2}).actors == ("check", "price", "bill")
    with pytest.raises(RefusedError, match='"total" is a required property'):
        mesh.call("order", {"sum": 2})
    with pytest.raises(TestKitError, match="no tool 'oder'; did you mean 'order'"):
        mesh.call("oder")


def test_secrets_and_data_are_those_of_the_test(shop: Path, tmp_path: Path) -> None:
    mesh = Mesh(shop, data=tmp_path / "lake", env={"API_KEY": "k"})
    assert mesh.send("price", {"total": 1}).result["key"] == "k"
    assert (tmp_path / "lake" / "prices" / "last.txt").read_text() == "2"


def test_frames_and_slices_are_children(mesh: Mesh) -> None:
    run = mesh.send("split", {"totals": [1, 2]}, then=["x-fan-in", "bill"])
    assert [item["price"] for item in run.result["prices"]] == [2, 4]
    assert run.actors == ("split", "x-fan-in", "bill")
    assert {child.actors for child in run.children} == {("price",)}

    (child,) = mesh.send("frames", {}, then=["bill"]).children
    assert child.result == {"n": 2, "billed": True}


def test_a_failed_call_is_retried_in_virtual_time(mesh: Mesh) -> None:
    mesh.fail("price", ConnectionError, times=2)
    before = mesh.now

    run = mesh.send("price", {"total": 1})

    assert run.result["price"] == 2
    assert [(error.actor, error.attempt, error.type, error.is_final) for error in run.errors] == [
        ("price", 1, "ConnectionError", False),
        ("price", 2, "ConnectionError", False),
    ]
    assert timedelta(seconds=2) < mesh.now - before < timedelta(minutes=1)


@pytest.mark.parametrize("error", [ConnectionError, ConnectionError("gone")])
def test_each_planned_failure_has_a_traceback_of_its_own(mesh: Mesh, error: type[Exception] | Exception) -> None:
    mesh.fail("price", error, times=2)
    first, second = mesh.send("price", {"total": 1}).errors
    assert first.traceback == second.traceback


def test_the_result_of_a_failed_run_raises_its_error(mesh: Mesh) -> None:
    mesh.fail("price", ValueError("no price"))

    run = mesh.send("price", {"total": 1})

    assert run.status == "failed"
    with pytest.raises(NotSucceededError, match=rf"run {run.id} failed\nprice, attempt 1: ValueError: no price\nTrace"):
        assert run.result
    assert run.payload == {"total": 1}
    (error,) = mesh.send("crash", {}).errors
    assert (error.type, "orders.py" in error.traceback, error.is_final) == ("SystemExit", True, True)


def test_errors_of_children_are_errors_of_the_run(mesh: Mesh) -> None:
    mesh.fail("price", KeyError("total"))
    run = mesh.send("split", {"totals": [1, 2]}, then=["x-fan-in"])
    assert run.status == "failed"
    assert {(error.actor, error.type) for error in run.errors} >= {("price", "KeyError")}


def test_a_process_that_dies_and_a_message_that_comes_twice_lose_and_double_nothing(mesh: Mesh) -> None:
    mesh.kill_after("check")
    mesh.duplicate("bill")

    run = mesh.send("check", {"total": 3}, then=["price", "bill"])

    assert run.result["billed"]
    mesh.travel(minutes=10)  # until SQS has delivered the batch of the dead process again
    assert run.actors == ("check", "price", "bill")
    assert sum("CRASHES after its batch" in line for line in mesh.log) == 1
    assert sum(" receives " in line and "bill/" in line for line in mesh.log) >= 3


@pytest.mark.slow
def test_a_pause_waits_for_its_answer_for_days(mesh: Mesh) -> None:
    run = mesh.send("approve", {"total": 3}, then=["bill"])
    assert run.status == "paused"
    assert run.question is not None
    assert (run.question.prompt, run.question.fields[0].name) == ("Ship it?", "approved")
    with pytest.raises(NotSucceededError, match=r"'Ship it\?'; answer it with mesh.answer\(run, approved=…\)"):
        assert run.result
    with pytest.raises(RefusedError, match="should be true or false"):
        mesh.answer(run, approved="perhaps")

    before = mesh.now
    mesh.travel(days=2)
    assert mesh.now - before >= timedelta(days=2)

    assert mesh.answer(run, approved=True).result == {"total": 3, "approved": True, "billed": True}
    with pytest.raises(RefusedError, match="no longer paused"):
        mesh.answer(run, approved=True)


def test_a_canceled_run_has_no_result(mesh: Mesh) -> None:
    run = mesh.cancel(mesh.send("approve", {"total": 3}, then=["bill"]))
    assert run.status == "canceled"


def test_the_deadline_of_a_retry_fails_the_run(mesh: Mesh) -> None:
    mesh.fail("bill", ConnectionError, times=9)
    run = mesh.send("bill", {}, timeout=2)
    assert run.status == "failed"
    with pytest.raises(TestKitError, match="give `timeout` or `then`"):
        mesh.send("check", {}, then=["bill"], timeout=2)


def test_what_the_mesh_does_not_have_is_named(mesh: Mesh, tmp_path: Path) -> None:
    with pytest.raises(TestKitError, match="no actor 'chek'; did you mean 'check'"):
        mesh.send("chek")
    with pytest.raises(TestKitError, match="no actor 'zzz'; it has approve, bill"):
        mesh.kill_after("zzz")
    with pytest.raises(TestKitError, match="'approve' has no handler"):
        mesh.fail("approve", ValueError)
    (tmp_path / "bad.yaml").write_text("namespace: shop\nactors: {a: {handler: nowhere.f}}\n")
    with pytest.raises(MeshFileError):
        Mesh(tmp_path / "bad.yaml")


def test_meshes_with_modules_of_the_same_name_do_not_mix(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "handlers").mkdir(parents=True)
    (other / "handlers" / "orders.py").write_text("def check(payload): return 'other'")
    (other / "mesh.yaml").write_text("namespace: other\ncode: handlers\nactors: {check: {handler: orders.check}}\n")

    assert Mesh(shop).send("bill", {}).result == {"billed": True}
    assert Mesh(other / "mesh.yaml").send("check").result == "other"
    assert Mesh(shop).send("bill", {}).result == {"billed": True}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history(shop: Path) -> None:
    def history(seed: int) -> tuple[str, ...]:
        mesh = Mesh(shop, seed=seed, start=datetime(2026, 1, 2, tzinfo=UTC))
        mesh.send("split", {"totals": [1, 2, 3]}, then=["x-fan-in", "bill"])
        return mesh.log

    assert history(1) == history(1)
    assert history(1) != history(2)


def test_modules_that_the_test_has_imported_stay_its_own(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ModuleType("orders")
    monkeypatch.setitem(sys.modules, "orders", own)
    mesh = Mesh(shop)
    for _ in range(2):
        assert mesh.send("bill", {}).result == {"billed": True}
        assert sys.modules["orders"] is own


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
