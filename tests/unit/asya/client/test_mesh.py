"""A mesh, as a program uses it: what it sends, and what it asks the gateway."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import pytest

from asya.client import AccessDeniedError, ConflictError, ContractError, Mesh, MeshError, NotFoundError, RefusedError
from asya.protocol.keys import S3Prefix
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3
from tests.unit.asya.client.conftest import task

if TYPE_CHECKING:
    from asya.client.mesh_client import MeshClient
    from tests.unit.asya.client.conftest import FakeGateway


@dataclass
class Order:
    total: Decimal


@pytest.fixture
def mesh(client: MeshClient) -> Mesh:
    return Mesh(client=client)


@pytest.mark.parametrize(("then", "following"), [((), ()), ("bill", ("bill",)), (["bill", "ship"], ("bill", "ship"))])
def test_a_payload_is_sent_to_its_actor(
    gateway: FakeGateway, mesh: Mesh, then: Any, following: tuple[str, ...]
) -> None:
    sent = mesh.send("check", Order(Decimal("9.50")), then=then)
    (envelope,) = gateway.sent
    assert (envelope.id, msgspec.json.decode(envelope.payload)) == (sent.id, {"total": "9.50"})
    assert (envelope.route.curr, envelope.route.next) == ("check", following)
    assert gateway.calls == []


def test_an_id_of_ones_own_is_sent_once(gateway: FakeGateway, mesh: Mesh) -> None:
    gateway.answers = [(404, {}), (200, task("running", "order 7"))]
    assert mesh.send("check", {}, task_id="order 7").id == "order 7"
    assert mesh.send("check", {}, task_id="order 7").id == "order 7"
    assert [envelope.id for envelope in gateway.sent] == ["order 7"]


def test_without_the_right_to_read_tasks_nothing_is_sent_twice(gateway: FakeGateway, mesh: Mesh) -> None:
    gateway.answers = [(403, {"message": "Forbidden"})]
    with pytest.raises(AccessDeniedError):
        mesh.send("check", {}, task_id="order-7")
    assert gateway.sent == []


@pytest.mark.parametrize(
    ("task_id", "problem"),
    [
        ("", "is empty"),
        ("x" * 257, "has 257 bytes; 256 at most"),
        ("order/7", "has '/'; an id has none of"),
        ("0" * 8 + "-0000-8000-8000-" + "0" * 12, "version 8"),
    ],
)
def test_an_id_that_cannot_be_one_is_refused(gateway: FakeGateway, mesh: Mesh, task_id: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        mesh.send("check", {}, task_id=task_id)
    assert (gateway.sent, gateway.calls) == ([], [])


def test_a_payload_that_is_no_json_is_not_sent(gateway: FakeGateway, mesh: Mesh) -> None:
    with pytest.raises(ContractError):
        mesh.send("check", {"rate": float("inf")})
    assert gateway.sent == []


@pytest.mark.parametrize("as_object", [True, False])
def test_a_tool_is_called_with_its_arguments(gateway: FakeGateway, mesh: Mesh, as_object: bool) -> None:
    gateway.answers = [(202, {"id": "t1", "status": "pending"})]
    total = Decimal("9.50")
    called = mesh.call("order", Order(total)) if as_object else mesh.call("order", total=total)
    (call,) = gateway.calls
    assert (called.id, call.method, call.path) == ("t1", "POST", "/tools/call")
    assert call.body == {"name": "order", "arguments": {"total": "9.50"}}
    assert call.headers == {"content-type": "application/json", "prefer": "wait=0"}


def test_a_tool_may_be_called_under_a_key(gateway: FakeGateway, mesh: Mesh) -> None:
    mismatch = {"error": {"code": "idempotency_mismatch", "message": "another request", "field": "Idempotency-Key"}}
    gateway.answers = [(200, {"id": "t1"}), (409, mismatch)]
    mesh.call("order", idempotency_key="order-7", total=1)
    assert gateway.calls[0].headers["idempotency-key"] == "order-7"
    assert gateway.calls[0].body["arguments"] == {"total": 1}
    with pytest.raises(ConflictError) as caught:
        mesh.call("order", idempotency_key="order-7", total=2)
    assert caught.value.code == "idempotency_mismatch"


def test_arguments_are_given_in_one_way(gateway: FakeGateway, mesh: Mesh) -> None:
    with pytest.raises(TypeError, match="not both"):
        mesh.call("order", {"total": 1}, total=1)
    assert gateway.calls == []


def test_wrong_arguments_name_the_field(gateway: FakeGateway, mesh: Mesh) -> None:
    problem = {"error": {"code": "invalid_arguments", "message": "total is missing", "field": "arguments.total"}}
    gateway.answers = [(400, problem)]
    with pytest.raises(RefusedError, match="total is missing") as caught:
        mesh.call("order")
    assert (caught.value.status, caught.value.field) == (400, "arguments.total")


def test_an_unknown_tool_is_not_found(gateway: FakeGateway, mesh: Mesh) -> None:
    gateway.answers = [(404, {"error": {"code": "unknown_tool", "message": "no"}})]
    with pytest.raises(NotFoundError, match="the mesh 'shop' has no tool 'ship'"):
        mesh.call("ship")


def test_the_gateway_selects_and_groups(gateway: FakeGateway, mesh: Mesh) -> None:
    since = datetime(2026, 11, 20, 10, tzinfo=timezone(timedelta(hours=1)))
    gateway.answers = [(200, {"items": []})]
    assert list(mesh.tasks(status="failed", tool="order", error="KeyError", since=since, roots=True)) == []
    filters = {"tool": "order", "error": "KeyError", "since": "2026-11-20T09:00:00.000000Z", "roots": "true"}
    assert gateway.calls[0].query == {"status": "failed", "limit": "100"} | filters
    group = {"actor": "bill", "error": "KeyError: #", "count": 2, "first": "a", "last": "b", "example": "t"}
    gateway.answers = [(200, {"items": [group], "next_cursor": "x"}), (200, {"items": [group]})]
    assert [(each.actor, each.count) for each in mesh.failures(actor="bill", until=since)] == [("bill", 4)]
    assert gateway.calls[-1].path == "/api/v1/operations/failures"
    assert gateway.calls[-1].query == {"actor": "bill", "until": "2026-11-20T09:00:00.000000Z", "cursor": "x"}


def test_a_filter_for_operators_is_refused_with_what_to_do(gateway: FakeGateway, mesh: Mesh) -> None:
    problem = {"code": "forbidden", "message": "only operators select tasks by owner", "field": "owner"}
    gateway.answers = [(403, {"error": problem})]
    with pytest.raises(AccessDeniedError, match="403: only operators select tasks by owner") as caught:
        list(mesh.tasks(owner="AIDABOB"))
    assert (caught.value.advice, caught.value.field) == ("Ask an operator of the mesh.", "owner")
    gateway.answers = [(403, {"message": "Forbidden"})]
    with pytest.raises(AccessDeniedError) as caught:
        list(mesh.tasks())
    assert caught.value.advice == "Your credentials need execute-api:Invoke on the mesh's API."


def test_a_time_without_a_zone_is_refused(gateway: FakeGateway, mesh: Mesh) -> None:
    with pytest.raises(ValueError, match="since has no time zone"):
        list(mesh.tasks(since=datetime(2026, 11, 20)))  # noqa: DTZ001
    assert gateway.calls == []


def test_a_gateway_that_ignores_a_filter_is_too_old(gateway: FakeGateway, mesh: Mesh) -> None:
    gateway.answers = [(200, {"items": [task("failed", "b")]})]
    with pytest.raises(MeshError, match="does not know all of these filters: status, tool"):
        list(mesh.tasks(status="failed", tool="order"))
    gateway.answers = [(404, {"message": "Not Found"})]
    with pytest.raises(MeshError, match="does not group failures"):
        mesh.failures()


def test_tasks_are_read_page_by_page(gateway: FakeGateway, mesh: Mesh) -> None:
    pages = [{"items": [task("failed", "b")], "next_cursor": "x"}, {"items": [task("failed", "a")]}]
    gateway.answers = [(200, page) for page in pages]
    tasks = mesh.tasks(status="failed")
    assert next(tasks).id == "b"
    assert len(gateway.calls) == 1
    assert [each.id for each in tasks] == ["a"]
    assert [call.query for call in gateway.calls] == [
        {"status": "failed", "limit": "100"},
        {"status": "failed", "limit": "100", "cursor": "x"},
    ]


@pytest.fixture
def bucket(client: MeshClient) -> MemoryS3:
    """The bucket of the mesh, whose data lies below a prefix."""
    found, connection = MemoryS3(bucket=Bucket(name="asya-shop")), client.connection
    connection.data = S3Prefix("asya-shop", "data/")  # type: ignore[misc]
    connection.s3 = lambda: found  # type: ignore[method-assign,assignment,return-value]
    return found


@pytest.mark.parametrize("content", [b"a,b", io.BytesIO(b"a,b")])
def test_a_file_is_written_and_opened_by_its_reference(mesh: Mesh, bucket: MemoryS3, content: bytes | BinaryIO) -> None:
    assert mesh.write_data("orders/7.csv", content) == "s3://asya-shop/data/orders/7.csv"
    assert bucket.keys() == ["data/orders/7.csv"]
    assert mesh.open_data("orders/7.csv").read() == b"a,b"


def test_a_file_that_the_data_lacks_is_named(mesh: Mesh, bucket: MemoryS3) -> None:
    with pytest.raises(FileNotFoundError, match=r"the data of the mesh has no orders/8\.csv"):
        mesh.open_data("orders/8.csv")
    assert bucket.keys() == []


def test_what_is_no_reference_is_no_call(mesh: Mesh, bucket: MemoryS3) -> None:
    for act in (lambda: mesh.write_data("s3://other/7.csv", b""), lambda: mesh.open_data("")):
        with pytest.raises(ValueError, match="is not a reference"):
            act()
    assert bucket.calls == []


def test_a_failure_of_the_bucket_is_an_error_of_the_mesh(mesh: Mesh, bucket: MemoryS3) -> None:
    bucket.fails = lambda _action, _key: True
    for act in (lambda: mesh.write_data("orders/7.csv", b""), lambda: mesh.open_data("orders/7.csv")):
        with pytest.raises(MeshError, match=r"orders/7\.csv"):
            act()
