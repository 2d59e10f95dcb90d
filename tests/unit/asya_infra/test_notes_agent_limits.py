"""Notes on tools that clients of the Model Context Protocol refuse, with the limit of each client."""

from pathlib import Path

import pytest

from asya_infra.mesh_file import load_mesh
from asya_infra.notes import code_notes

EITHER = "{anyOf: [{required: [a]}, {required: [b]}]}"
TREE = "{properties: {next: {$ref: '#/$defs/N'}}, $defs: {N: {properties: {next: {$ref: '#/$defs/N'}}}}}"


def notes_of(folder: Path, name: str, more: str = "") -> list[str]:
    (folder / "functions" / "handlers").mkdir(parents=True)
    (folder / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    tool = f"tools:\n  {name}: {{route: [d]{more}}}\n"
    (folder / "mesh.yaml").write_text(f"namespace: shop\nactors:\n  d: {{handler: shop.one}}\n{tool}")
    return [note.replace(f"{folder}/", "") for note in code_notes(load_mesh(folder / "mesh.yaml"))]


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        (
            "a" * 73,
            "",
            "its name has 73 characters; Claude Desktop, Amazon Bedrock, Gemini and OpenAI take 64, and refuse all",
        ),
        (
            "a" * 52,
            "",
            "its name and that of the server, asya-shop, have 61 characters; Cursor leaves out tools with more than 60",
        ),
        (
            "a.b",
            "",
            "its name has a '.'; Claude, Amazon Bedrock and OpenAI take letters, digits, '_' and '-', and refuse all tools",
        ),
        (
            "1st",
            "",
            "its name should begin with a letter or '_'; Gemini refuses all tools of the mesh otherwise; rename it",
        ),
        (
            "t",
            f", description: {'d' * 1025}",
            "its description has 1025 characters; OpenAI takes 1024, and refuses all tools",
        ),
        (
            "t",
            f", input_schema: {EITHER}",
            "its input_schema has 'anyOf' at the top level, which Claude and OpenAI refuse; /mcp",
        ),
        ("t", ", input_schema: {type: [object]}", "its input_schema has 'type' at the top level"),
        (
            "t",
            ", input_schema: {properties: {'a b': {}}}",
            "its argument 'a b' is refused by Claude with all tools of the mesh",
        ),
        (
            "t",
            f", input_schema: {TREE}",
            "its input_schema refers to itself; clients with Gemini, such as Google's ADK, read no",
        ),
    ],
)
def test_a_note_names_the_limits_of_clients(tmp_path: Path, name: str, more: str, text: str) -> None:
    [note] = notes_of(tmp_path, name, more)
    assert note.startswith(f"mesh.yaml: tools.{name}: {text}")


@pytest.mark.parametrize(
    "schema", ["{type: object}", "{properties: {a: {anyOf: [{}, {}]}}}", "{$ref: '#/$defs/A', $defs: {A: {}}}"]
)
def test_a_tool_that_all_clients_take_has_no_note(tmp_path: Path, schema: str) -> None:
    assert notes_of(tmp_path, "a" * 51, f", input_schema: {schema}") == []
