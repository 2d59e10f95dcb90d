"""Tests that the page has each key of the mesh file, with its default and limits."""

from typing import Any

from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import json_schema
from docs_site.reference.mesh_file_keys import page

PAGE = page()


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_each_key_of_each_section_has_a_row() -> None:
    schema: dict[str, Any] = json_schema(MeshFile)
    missing = [
        f"{name}.{key}"
        for name, definition in {"MeshFile": schema, **schema["$defs"]}.items()
        for key in definition.get("properties", {})
        if f"\n| `{key}` |" not in section(name)
    ]
    assert missing == []


def test_a_row_has_type_default_and_limits() -> None:
    assert "| `max_hops` | integer | `1000` | at least `1`; at most `100000` |" in section("MeshFile")
    assert "| `namespace` | string | required |" in section("MeshFile")
    assert "| `sink` | [SinkSection](#sinksection) |" in section("MeshFile")
