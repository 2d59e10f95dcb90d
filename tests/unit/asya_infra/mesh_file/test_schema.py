"""The committed JSON Schema equals the schema of the model."""

import json
import re

import yaml

from asya_infra.mesh_file.schema import PATH, schema_text
from tests.paths import PROJECT


def test_the_committed_schema_is_current() -> None:
    assert PATH.read_text() == schema_text(), "run `python -m asya_infra.mesh_file.schema`"


def test_values_have_the_form_of_the_file() -> None:
    actor = json.loads(schema_text())["$defs"]["ActorSection"]["properties"]
    assert actor["timeout"]["default"] == "30s"
    assert "validate" in actor
    assert "validate_" not in actor


GUIDE = (PROJECT / "docs" / "reference" / "mesh-file.md").read_text()
ALARMS = (PROJECT / "docs" / "reference" / "alarms.md").read_text()


def test_the_reference_documents_every_key() -> None:
    sections = [json.loads(schema_text()), *json.loads(schema_text())["$defs"].values()]
    keys = {key for section in sections for key in section.get("properties", ()) if section.get("title") not in LATER}
    assert {key for key in keys if not re.search(rf"\b{key}\b", GUIDE + ALARMS)} == set()


# Kinds of actors that the mesh does not have yet.
LATER = {"FanInSection"}


def test_the_examples_of_the_reference_are_yaml() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert len(examples) >= 4
    for example in examples:
        assert isinstance(yaml.safe_load(example), dict)
