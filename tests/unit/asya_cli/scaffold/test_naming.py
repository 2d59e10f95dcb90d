"""Names are those of the protocol, and an error says what to type instead."""

import keyword
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya_cli.scaffold.naming import InvalidNameError, check_actor, check_namespace, check_tool, code_names

LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("My_Shop", "Type: asya init my-shop"),
        ("../shop", "Type: asya init shop"),
        ("CheckOrders", "Type: asya init check-orders"),
        ("a" * 64, f"Type: asya init {'a' * 63}"),
        ("shop/", "Type: asya init shop"),
        ("-", "Type a name, such as: asya init shop"),
        ("", "Type a name, such as: asya init shop"),
        ("ø", "Type a name, such as: asya init shop"),
    ],
)
def test_a_mesh_is_a_dns_label(name: str, hint: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        check_namespace(name)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [("x-sink", "sink"), ("happy-end", "my-happy-end"), ("Bill", "bill")],
)
def test_an_actor_is_a_dns_label_that_is_not_reserved(name: str, hint: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        check_actor(name, "asya new actor {}")
    assert caught.value.hint.endswith(f"asya new actor {hint}")
    assert check_actor(hint, "asya new actor {}") == hint


@pytest.mark.parametrize("name", ["a b", "", "a" * 129, "ø", "wait_for_task"])
def test_a_tool_has_the_characters_of_the_model_context_protocol(name: str) -> None:
    with pytest.raises(InvalidNameError):
        check_tool(name, "asya new tool {}")
    assert check_tool("Find.products_2-b", "") == "Find.products_2-b"


@pytest.mark.parametrize(
    ("name", "module", "model"),
    [
        ("check-orders", "check_orders", "CheckOrders"),
        ("7up", "actor_7up", "Actor7up"),
        ("json", "json_actor", "Json"),
        ("import", "import_actor", "Import"),
        ("pyspark", "pyspark_actor", "Pyspark"),
        ("msgspec", "msgspec_actor", "Msgspec"),
        ("none", "none", "NonePayload"),
        ("Find.products", "find_products", "FindProducts"),
    ],
)
def test_python_gets_names_that_hide_nothing(name: str, module: str, model: str) -> None:
    code = code_names(name)
    assert (code.module, code.model) == (module, model)


@given(LABELS)
def test_every_label_has_names_in_python(name: str) -> None:
    code = code_names(name)
    assert code.module.isidentifier()
    assert code.model.isidentifier()
    assert not keyword.iskeyword(code.module)
    assert not keyword.iskeyword(code.model)
    assert code.module not in sys.stdlib_module_names
