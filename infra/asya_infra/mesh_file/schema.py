"""The JSON Schema of the mesh file, for editors. `python -m asya_infra.mesh_file.schema` writes it to `docs/reference/`."""

import json
from typing import Any

from asya_infra.mesh_file.mesh_model import GatewaySection, MeshFile
from asya_infra.mesh_file.units import DURATION_SCHEMA, SIZE_SCHEMA, format_duration
from asya_infra.repository import REPOSITORY

PATH = REPOSITORY / "docs" / "reference" / "mesh.schema.json"


def schema_text() -> str:
    """Return the schema as JSON text."""
    schema = MeshFile.model_json_schema(by_alias=True)
    _restore_file_units(schema)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _restore_file_units(schema: Any) -> None:
    """Describe values in the form of the file (`30s`, `256k`), not in the model's seconds and bytes."""
    if isinstance(schema, list):
        for value in schema:
            _restore_file_units(value)
    elif isinstance(schema, dict):
        pattern, default = schema.get("pattern"), schema.get("default")
        if pattern in {DURATION_SCHEMA["pattern"], SIZE_SCHEMA["pattern"]}:
            for bound in ("minimum", "maximum", "exclusiveMinimum"):
                schema.pop(bound, None)
        if pattern == DURATION_SCHEMA["pattern"] and isinstance(default, float):
            schema["default"] = format_duration(default)
        if schema.get("default") == GatewaySection().max_body:
            schema["default"] = f"{GatewaySection().max_body // 1024}k"
        if "$ref" in schema:
            schema.pop("default", None)  # each key of the section has its own default
        for value in schema.values():
            _restore_file_units(value)


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
