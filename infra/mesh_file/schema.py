"""The JSON Schema of the mesh file, for editors: `python -m infra.mesh_file.schema` writes it to `docs/`."""

import json
from pathlib import Path
from typing import Any

from infra.mesh_file.mesh_model import MeshFile
from infra.mesh_file.units import show_duration

PATH = Path(__file__).parents[2] / "docs" / "mesh.schema.json"


def schema_text() -> str:
    """The schema as it is committed."""
    schema = MeshFile.model_json_schema(by_alias=True)
    _write_durations(schema)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _write_durations(schema: Any) -> None:
    """Show defaults the way the file writes them: `30s` where the model holds 30.0."""
    if isinstance(schema, dict):
        if isinstance(schema.get("default"), float) and "(ms|s|m|h|d)" in json.dumps(schema):
            schema["default"] = show_duration(schema["default"])
        for value in schema.values():
            _write_durations(value)
    elif isinstance(schema, list):
        for value in schema:
            _write_durations(value)


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
