"""The schemas of `tools/list` mean what those of the mesh file mean, in a form that clients take (`protocol §13.mcp.schemas`)."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace as changed

from asya.capabilities.mcp.tools import REFUSED_AT_TOP, listed, unwrapped, wrapper_of
from asya.protocol.mesh_table import Tool
from tests.doubles.mcp_gateway import McpGateway

EITHER: dict[str, Any] = {
    "anyOf": [
        {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"type": "object", "properties": {"arguments": {"$ref": "#/$defs/Count"}}, "required": ["arguments"]},
    ],
    "$defs": {"Count": {"type": "integer", "minimum": 1}},
}
NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "required": ["id"],
}
TREE = {**NODE, "$defs": {"Node": NODE}}

_leaves = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {}])
_names = st.sampled_from(["id", "arguments", "input", "payload", "n", "default", "$ref"])


def _objects(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_names, schemas, max_size=2)},
        optional={
            "required": st.lists(_names, max_size=1),
            "additionalProperties": st.booleans(),
            "title": st.just("T"),
        },
    )


_within = st.recursive(
    _leaves, lambda inner: _objects(inner) | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1)})
)
_combined = st.sampled_from(["anyOf", "oneOf", "allOf"])
_tops = st.one_of(
    _objects(_within),
    st.builds(lambda key, each: {key: each}, _combined, st.lists(_objects(_within), min_size=1)),
    st.builds(lambda top, each: {**top, "not": each}, _objects(_within), _within),
    st.builds(lambda each: {"if": each, "then": {"required": ["n"]}}, _objects(_within)),
    st.builds(lambda each: {"anyOf": [each, {"properties": {"n": {"$ref": "#/anyOf/0"}}}]}, _objects(_within)),
    st.sampled_from(
        [
            {},
            {"$ref": "#/$defs/B"},
            {"type": ["object", "null"]},
            {"enum": [{"n": 1}]},
            {"properties": {"n": {"$ref": "#"}}},
        ]
    ),
)
SCHEMAS = st.builds(
    lambda top, b: {**top, "$defs": {"A": {"type": "string", "maxLength": 1}, "B": b}},
    _tops,
    st.sampled_from([NODE["properties"]["id"], {"type": "object", "properties": {"id": {"$ref": "#/$defs/A"}}}])
    | st.just({"type": "object", "properties": {"id": {"$ref": "#/$defs/B"}}}),
)
_values = st.recursive(
    st.sampled_from(["", "a", "ab", 1, 1.5, None, True]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner),
)
ARGUMENTS = st.dictionaries(_names, _values, max_size=3)


@pytest.mark.rule("13.mcp.schemas")
@given(SCHEMAS, ARGUMENTS)
@pytest.mark.slow
def test_a_listed_schema_is_a_plain_object_that_means_the_same(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    shown = listed(schema)
    assert shown["type"] == "object"
    assert not shown.keys() & set(REFUSED_AT_TOP)
    fits = jsonschema_rs.validator_for(schema).is_valid(arguments)
    wrapper = wrapper_of(schema)
    sent = arguments if wrapper is None else {wrapper: arguments}
    assert jsonschema_rs.validator_for(shown).is_valid(sent) == fits
    # Arguments as they are differ from those in the property, unless an undeclared one has its name and is an object.
    is_ambiguous = arguments.keys() == {wrapper} and isinstance(arguments[str(wrapper)], dict)
    for each in (sent,) if is_ambiguous else (sent, arguments):
        assert json.loads(bytes(unwrapped(schema, Raw(json.dumps(each).encode())))) == arguments


def test_a_union_is_the_one_argument_of_an_object() -> None:
    shown = listed(EITHER)
    assert shown == {
        "type": "object",
        "properties": {
            "input": {
                "anyOf": [
                    EITHER["anyOf"][0],
                    {
                        "type": "object",
                        "properties": {"arguments": EITHER["$defs"]["Count"]},
                        "required": ["arguments"],
                    },
                ]
            }
        },
        "required": ["input"],
        "additionalProperties": False,
    }
    for sent in ('{"input": {"id": "7"}}', '{"id": "7"}'):
        assert json.loads(bytes(unwrapped(EITHER, Raw(sent.encode())))) == {"id": "7"}
    for other in ("[1]", "{", '{"input": 1, "id": 2}'):
        assert bytes(unwrapped(EITHER, Raw(other.encode()))).decode() == other


@pytest.mark.rule("13.mcp.schemas")
def test_a_schema_that_refers_to_itself_gets_no_type_that_it_does_not_state() -> None:
    chain: dict[str, Any] = {"properties": {"n": {"$ref": "#"}}}
    shown = listed(chain)
    assert shown["properties"] == {"arguments": {"properties": {"n": {"$ref": "#/properties/arguments"}}}}
    stated = {"type": "object", **chain}
    assert listed(stated) == stated


def test_a_schema_that_would_become_large_keeps_its_references() -> None:
    levels = {f"L{n}": {"properties": {side: {"$ref": f"#/$defs/L{n + 1}"} for side in "ab"}} for n in range(60)}
    schema = {"type": "object", "properties": {"top": {"$ref": "#/$defs/L0"}}, "$defs": {**levels, "L60": {}}}
    assert listed(schema) == schema


def test_values_are_no_references() -> None:
    union = {"anyOf": [{"const": {"$ref": "#/anyOf/0"}}]}
    assert listed(union)["properties"] == {"arguments": union}
    value = {"$ref": "#/$defs/A"}
    schema = {"type": "object", "properties": {"n": {"const": value}, "m": value}, "$defs": {"A": {"type": "string"}}}
    assert listed(schema) == {"type": "object", "properties": {"n": {"const": value}, "m": {"type": "string"}}}


def test_a_recursive_schema_keeps_its_references() -> None:
    assert listed(TREE) == TREE
    assert bytes(unwrapped(TREE, Raw(b'{"id": "1"}'))) == b'{"id": "1"}'


@pytest.mark.rule("13.mcp.schemas")
def test_a_call_has_the_arguments_of_a_union_in_its_property_or_as_they_are(mcp: McpGateway) -> None:
    tool = Tool(description="d", route=("publish-report",), input_schema=EITHER)
    mcp.gateway.mesh = changed(mcp.gateway.mesh, tools={"either": tool})
    (shown, *_) = mcp.request("tools/list")[1]["result"]["tools"]
    assert set(shown["inputSchema"]["properties"]) == {"input"}
    for arguments in ({"input": {"id": "7"}}, {"id": "7"}):
        result = mcp.call_tool("either", arguments)
        assert not result.get("isError"), result
    wrong = mcp.call_tool("either", {"input": {"arguments": 0}})
    assert wrong["isError"]
