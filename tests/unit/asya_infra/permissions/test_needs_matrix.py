"""The permissions of each function are what its manifest declares, for each call on each object of a mesh, and no more."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya import registry
from asya.protocol.mesh_table import MeshTable
from asya.senders.task_keys import runs_code
from asya_infra.addresses import Addresses
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.needs import Place, function_grants
from tests.doubles.generated_tables import mesh_tables
from tests.doubles.iam_matrix import Call, Matrix

pytestmark = pytest.mark.slow


def place_of(table: MeshTable) -> Place:
    addresses = Addresses(
        namespace=table.namespace,
        partition="aws",
        region="eu-west-1",
        account="111122223333",
        url_suffix="amazonaws.com",
    )
    return Place(addresses=addresses, table=table, application="00a")


def statements(function: str, place: Place) -> dict[str, list[dict[str, Any]]]:
    """The statements of a function by action: no action is a pattern."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for grant in function_grants(function, place):
        for action in grant.actions:
            found[action].append(grant.statement())
    return found


def differences(matrix: Matrix, function: str) -> list[tuple[str, Call]]:
    """What is allowed and not declared, or declared and not allowed."""
    allowed = statements(function, matrix.place)
    found = []
    for call in matrix.calls:
        request = call.request(matrix.place)
        assert request is not None
        may = is_allowed(allowed.get(request.action, ()), request)
        if may != matrix.declares(function, call):
            found.append(("allowed, and not declared" if may else "declared, and not allowed", call))
    return found


@settings(max_examples=60, deadline=None)
@given(mesh_tables(), st.data())
def test_what_is_declared_is_allowed_and_all_else_is_refused(table: MeshTable, data: st.DataObject) -> None:
    matrix = Matrix(place_of(table))
    assert differences(matrix, data.draw(st.sampled_from(matrix.functions))) == []


_READS = [f"dynamodb:{call}" for call in ("BatchGetItem", "GetItem", "Query", "Scan")]
_WRITES = [f"dynamodb:{call}" for call in ("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem")]


def may_write(allowed: dict[str, list[dict[str, Any]]], place: Place, table: str, *keys: str) -> bool:
    """Whether a function with these statements may write these items, by whichever call."""
    context = {"dynamodb:LeadingKeys": keys} if keys else {}
    arn = place.addresses.table_arn(table)
    return any(is_allowed(allowed.get(call, ()), Request(call, arn, context)) for call in _WRITES)


@settings(max_examples=60, deadline=None)
@given(mesh_tables())
def test_the_list_of_roles_is_written_by_the_deployment_alone(table: MeshTable) -> None:
    """Whoever adds a role to it may say what the mesh alone may say, such as an end."""
    place = place_of(table)
    for function in Matrix(place).functions:
        allowed = statements(function, place)
        for keys in (("ROLE#AROA1",), ("4711", "ROLE#AROA1"), ()):
            assert may_write(allowed, place, "sink", *keys) == (function == "x-roles" and keys == ("ROLE#AROA1",))


@settings(max_examples=60, deadline=None)
@given(mesh_tables())
def test_code_of_users_writes_no_item_of_another_actor(table: MeshTable) -> None:
    """Ids of raw messages are the exception: they belong to their senders, whichever actor takes the message."""
    place, other = place_of(table), "somebody-else"
    handlers = [name for name, actor in table.actors.items() if actor.kind == "handler"]
    for function in handlers:
        allowed = statements(function, place)
        own = {"hops": f"{function}#4711", "breaker": function, "sink": f"START#{function}#4711"}
        foreign = {"hops": f"{other}#4711", "breaker": other, "sink": f"START#{other}#4711"}
        for each in registry.of(table).tables:
            for keys in (
                (),
                (foreign.get(each, other),),
                (own.get(each, function), foreign.get(each, other)),
                ("4711",),
            ):
                assert not may_write(allowed, place, each, *keys), (function, each, keys)


@settings(max_examples=60, deadline=None)
@given(mesh_tables())
def test_code_of_users_reads_no_secret_but_that_of_its_actor(table: MeshTable) -> None:
    """Who reads the secret of the mesh makes the key of each task."""
    place = place_of(table)
    arn = place.addresses.table_arn("sink")
    for function in (name for name in table.actors if runs_code(table, name)):
        allowed, own = statements(function, place), f"KEY#{function}"
        for keys in ((own,), ("KEY#",), ("KEY#somebody-else",), (own, "KEY#"), ()):
            context = {"dynamodb:LeadingKeys": keys} if keys else {}
            may = any(is_allowed(allowed.get(call, ()), Request(call, arn, context)) for call in _READS)
            assert may == (keys == (own,)), (function, keys)
