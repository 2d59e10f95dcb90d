"""A small mesh with triggers, in the process of the test."""

from pathlib import Path

import pytest

MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
tools:
  greet:
    description: Greets somebody
    timeout: 60s
    input_schema: {type: object, required: [day], properties: {day: {type: string}}}
triggers:
  hourly: {route: [greet], cron: "0 * * * *", catch_up: 3h}
  nightly:
    tool: greet
    cron: "0 2 * * *"
    timezone: Europe/Oslo
    payload: {day: "{date}", at: "{time} {scheduled_at}"}
  wrong: {tool: greet, cron: "0 3 1 1 *", payload: {day: 7}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the mesh file and its handlers."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greetings.py").write_text(
        "def greet(payload):\n    return {**payload, 'greeted': True}\n"
    )
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path
