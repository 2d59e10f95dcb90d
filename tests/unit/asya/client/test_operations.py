"""What the gateway shows of a mesh at work, and gateways that do not know it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from asya.client.errors import MeshError, NotFoundError
from asya.client.operations import Operations
from asya.tasks.listing import TaskFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from asya.client.mesh_client import MeshClient
    from tests.unit.asya.client.conftest import FakeGateway

SINCE = datetime(2026, 11, 20, 9, tzinfo=UTC)


@pytest.fixture
def operations(client: MeshClient) -> Operations:
    return Operations(client)


@pytest.mark.parametrize(("actors", "query"), [(None, {}), (["bill", "ship"], {"actor": "bill,ship"})])
def test_the_numbers_are_those_of_some_actors_or_of_all(
    gateway: FakeGateway, operations: Operations, actors: list[str] | None, query: dict[str, str]
) -> None:
    gateway.answers = [(200, {"namespace": "shop", "at": "", "actors": [], "edges": [], "tools": []})]
    assert operations.numbers(actors).namespace == "shop"
    assert (gateway.calls[0].path, gateway.calls[0].query) == ("/api/v1/operations/mesh", query)


def test_lines_are_read_page_by_page(gateway: FakeGateway, operations: Operations) -> None:
    lines = [{"id": str(number), "actor": "bill", "line": f"line {number}"} for number in range(3)]
    gateway.answers = [(200, {"items": lines[:2], "next_cursor": "x"}), (200, {"items": lines[2:]})]
    assert [each.line for each in operations.actor_lines("bill", SINCE)] == ["line 0", "line 1", "line 2"]
    assert {call.path for call in gateway.calls} == {"/api/v1/operations/actors/bill/logs"}
    assert [call.query.get("cursor") for call in gateway.calls] == [None, "x"]
    assert {call.query["since"] for call in gateway.calls} == {"2026-11-20T09:00:00.000000Z"}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda mesh: mesh.numbers(), MeshError, "does not know the numbers of its mesh"),
        (lambda mesh: next(mesh.failure_pages(TaskFilter())), MeshError, "does not group failures"),
        (lambda mesh: next(mesh.actor_lines("bil", SINCE)), NotFoundError, "the mesh 'shop' has no actor 'bil'"),
    ],
)
def test_an_unknown_call_or_actor_is_an_error(
    gateway: FakeGateway,
    operations: Operations,
    call: Callable[[Operations], object],
    error: type[MeshError],
    text: str,
) -> None:
    gateway.answers = [(404, {"message": "Not Found"})]
    with pytest.raises(error, match=text):
        call(operations)


def test_a_task_without_a_record_has_no_set_and_no_payloads(gateway: FakeGateway, operations: Operations) -> None:
    gateway.answers = [(404, {"message": "Not Found"})]
    assert operations.task_set("a/b") is None
    assert operations.kept_hops("a/b") == []
    assert [call.path for call in gateway.calls] == ["/api/v1/mesh/a/b/set", "/api/v1/mesh/a/b/payloads"]
