"""The committed JSON Schema is the model's."""

import json

from infra.mesh_file.schema import PATH, schema_text


def test_the_committed_schema_is_current() -> None:
    assert PATH.read_text() == schema_text(), "run `python -m infra.mesh_file.schema`"


def test_it_speaks_of_what_stands_in_the_file() -> None:
    actor = json.loads(schema_text())["$defs"]["ActorSection"]["properties"]
    assert actor["timeout"]["default"] == "30s"
    assert "validate" in actor
    assert "validate_" not in actor
