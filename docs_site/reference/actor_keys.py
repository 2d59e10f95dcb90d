"""Writes the keys of actors into docs/reference/mesh-file.md, from their declarations: `make generated`."""

import json
from pathlib import Path
from typing import Any

from asya.registry import PRODUCT
from asya_infra.mesh_file.capability_model import mesh_model
from asya_infra.mesh_file.schema import schema_text
from asya_infra.mesh_file.sections import descriptions, keys_of
from docs_site.reference.tables import Schema, code, reference, table, with_written

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mesh-file.md"


def with_keys(page: str) -> str:
    """Return the page with the keys of actors as they are declared."""
    return with_written(page, _keys())


def _keys() -> list[str]:
    document: Schema = json.loads(schema_text())
    actor: Any = keys_of(mesh_model(PRODUCT))["actors"].type
    section = actor.__args__[0].__args__[1]
    texts = descriptions(section)
    keys: dict[str, Schema] = document["$defs"]["ActorSection"]["properties"]
    shared = document["$defs"]["ActorSettings"]["properties"]
    rows = [
        (code(key), _default(keys[key], document["$defs"]), texts[keys_of(section)[key].name].rstrip("."))
        for key in sorted(keys, key=lambda each: each in shared)
    ]
    return table(("key", "default", "meaning"), rows)


def _default(value: Schema, definitions: dict[str, Schema]) -> str:
    """Return the default as the mesh file has it; that of a section are its own defaults."""
    if section := reference(value):
        own = {key: each["default"] for key, each in definitions[section]["properties"].items() if each.get("default")}
        return f"`{{{', '.join(f'{key}: {each}' for key, each in own.items())}}}`" if own else "none"
    default = value.get("default")
    if isinstance(default, bool | int):
        return json.dumps(default)
    return f"`{default}`" if isinstance(default, str) else "none"


if __name__ == "__main__":
    PAGE.write_text(with_keys(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
