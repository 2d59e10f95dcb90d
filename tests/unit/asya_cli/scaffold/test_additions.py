"""What `asya new` adds."""

import pytest

from asya_cli.scaffold.additions import UnknownActorError, payload_model, tool_of_route

SOURCE = """
class Order: ...
def one(payload: Order): ...
async def later(payload: Order): ...
def keys(id: str, total: int): ...
def text(payload: "Order"): ...
def foreign(payload: dict): ...
def bare(payload): ...
"""


@pytest.mark.parametrize(
    ("function", "model"),
    [
        ("one", "orders.Order"),
        ("later", "orders.Order"),
        ("keys", None),
        ("text", None),
        ("foreign", None),
        ("bare", None),
        ("missing", None),
    ],
)
def test_the_type_of_a_payload_is_that_of_the_only_parameter(function: str, model: str | None) -> None:
    assert payload_model(SOURCE.encode(), "orders", function) == model
    assert payload_model(b"def one(", "orders", function) is None


def test_a_tool_without_a_known_type_takes_any_object() -> None:
    added = tool_of_route("bill", ("check", "pay"), ["check", "pay"], None)
    assert added.entries[0].value() == {
        "description": "What bill does, for those who call it",
        "route": ["check", "pay"],
    }
    assert 'asya_mesh.call("bill", {})' in added.files["tests/test_bill.py"]


@pytest.mark.parametrize(("name", "hint"), [("chek", "did you mean 'check'"), ("zzz", "the mesh has check, pay")])
def test_an_unknown_actor_of_a_route_is_named(name: str, hint: str) -> None:
    with pytest.raises(UnknownActorError, match=hint):
        tool_of_route("bill", ("pay", name), ["pay", "check"], None)
