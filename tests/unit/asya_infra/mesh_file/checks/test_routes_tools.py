"""The names of tools and their input schemas: the messages of invalid ones."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (
            "{route: [a], input_schema: {type: objct}}",
            "4: tools.t.input_schema.type: not a valid JSON Schema: "
            "\"objct\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            "{route: [a], input_schema: {$ref: '#/$defs/none'}}",
            "4: tools.t.input_schema: not a valid JSON Schema: Pointer '/$defs/none' does not exist",
        ),
    ],
)
def test_input_schemas(tool: str, problem: str) -> None:
    assert mesh_problems(f"tools: {{t: {tool}}}") == [problem]


@pytest.mark.rule("13.mcp.tools")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a b", "4: tools.a b: a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"),
        ("ü", "4: tools.ü: a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"),
        ("wait_for_task", "4: tools.wait_for_task: the gateway has its own tool 'wait_for_task'; rename this one"),
    ],
)
def test_names_of_tools(name: str, problem: str) -> None:
    text = f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\ntools: {{{name}: {{route: [a]}}}}\n"
    assert problems_of(text) == [problem]
