"""A small mesh with triggers, in the process of the test."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from asya.testing import Mesh

START = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
  hold: {kind: wait, wait: {for: 1h}}
tools:
  greet:
    description: Greets somebody
    timeout: 1h
    input_schema: {type: object, required: [day], properties: {day: {type: string}}}
triggers:
  nightly:
    tool: greet
    cron: "0 2 * * *"
    timezone: Europe/Oslo
    payload: {day: "{date}"}
  wrong: {tool: greet, cron: "0 3 1 1 *", payload: {day: 7}}
  orders: {route: [greet], event: {source: [shop], detail-type: [OrderPlaced]}, input: /detail}
  careful: {route: [greet], cron: "0 2 * * *", timezone: Europe/Oslo, payload: {day: "{date}"}, overlap: skip}
  silent: {route: [greet], cron: "0 0 * * *", enabled: false}
  # One lane each, but those of `each`.
  waiting: {route: [hold], event: {source: [shop], detail-type: [Asked]}, input: /detail, overlap: queue}
  gathered: {route: [hold], event: {source: [shop], detail-type: [Told]}, input: /detail, batch: {size: 10, window: 5m}}
  each: {route: [hold], event: {source: [shop], detail-type: [Of]}, input: /detail, overlap: queue, by: /customer}
  pushed: {route: [greet], webhook: {secret: hooks/github, signature: github}}
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greetings.py").write_text("def greet(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml", start=START)
