"""Payloads of triggers in a mesh file: placeholders, and the arguments of tools."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("trigger", "problems"),
    [
        ('{cron: "0 2 * * *", payload: {key: "{date}"}}', []),
        (
            '{cron: "0 2 * * *", payload: {kye: "{date}"}}',
            [
                ".n.payload: has no 'key', which the input_schema of the tool 't' requires",
                ".n.payload.kye: is no argument of the tool 't'; did you mean 'key'?",
            ],
        ),
        (
            '{cron: "0 2 * * *"}',
            [
                ".n.payload: has no 'key', which the input_schema of the tool 't' requires; add a payload with it",
                *(f".n.payload.{name}: is no argument of the tool 't'" for name in ("date", "scheduled_at", "time")),
            ],
        ),
        (
            "{event: {source: shop}, payload: {key: x}, batch: {size: 2, window: 1m}}",
            [
                ".n.payload: has no 'key', which the input_schema of the tool 't' requires",
                ".n.payload.items: is no argument of the tool 't'",
            ],
        ),
        ("{event: {source: shop}, input: /detail}", []),
    ],
)
def test_a_payload_has_the_arguments_of_its_tool(trigger: str, problems: list[str]) -> None:
    """No occurrence adds an argument, so each start would be a dead letter."""
    schema = "{type: object, required: [key], properties: {key: {type: string}}, additionalProperties: false}"
    tools = f"tools: {{t: {{route: [a], input_schema: {schema}}}}}\n"
    found = mesh_problems(f"{tools}triggers: {{n: {{tool: t, {trigger[1:]}}}")
    assert [problem.split("triggers", 1)[1] for problem in found] == problems


def test_an_object_gives_the_arguments_of_its_tool() -> None:
    tools = "tools: {t: {route: [a], input_schema: {type: object, required: [uri, file]}}}\n"
    found = mesh_problems(f"{tools}triggers: {{n: {{tool: t, s3: {{bucket: data}}}}}}")
    assert [problem.split("triggers", 1)[1] for problem in found] == [
        ".n.payload: has no 'file', which the input_schema of the tool 't' requires; add a payload with it"
    ]


@pytest.mark.parametrize(
    ("payload", "problems"),
    [
        ("{day: {date}}", ['.n.payload.day: is a mapping in YAML; put the placeholder in quotes: "{date}"']),
        ("{days: [{date}]}", ['.n.payload.days[0]: is a mapping in YAML; put the placeholder in quotes: "{date}"']),
        ("{day: {date: null, of: x}}", []),
        ("{date: null}", []),
    ],
)
def test_a_placeholder_needs_quotes(payload: str, problems: list[str]) -> None:
    found = mesh_problems(f'triggers: {{n: {{route: [a], cron: "0 2 * * *", payload: {payload}}}}}')
    assert [problem.split("triggers", 1)[1] for problem in found] == problems


@pytest.mark.parametrize("name", ["[key]", "{a: b}", "1"])
def test_a_required_name_that_is_no_text_is_reported_by_the_schema(name: str) -> None:
    tool = f"tools: {{t: {{route: [a], input_schema: {{type: object, required: [{name}]}}}}}}"
    (problem,) = mesh_problems(f"triggers: {{n: {{tool: t, cron: 0 2 * * *, payload: {{key: x}}}}}}\n{tool}")
    assert problem.startswith("5: tools.t.input_schema.required[0]: not a valid JSON Schema")
