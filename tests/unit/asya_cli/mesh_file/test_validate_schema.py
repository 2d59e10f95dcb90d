"""`asya schema`: the JSON Schema of the mesh file."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from asya_cli.main import app


def test_the_schema_is_that_of_the_reference() -> None:
    assert "actors" in json.loads(CliRunner().invoke(app, ["schema"]).stdout)["properties"]
