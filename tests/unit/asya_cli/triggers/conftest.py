"""A mesh with triggers in memory, for the commands of this process."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.doubles.kit_cloud import KitCloud, kit_cloud

START = datetime(2026, 11, 25, 12, 30, tzinfo=UTC)
MESH = """
namespace: shop
code: handlers
actors:
  greet: {handler: greetings.greet}
  hold: {kind: wait, wait: {for: 1h}}
triggers:
  nightly:
    route: [greet]
    cron: "0 2 * * *"
    timezone: Europe/Oslo
    payload: {day: "{date}"}
  silent: {route: [greet], cron: "0 0 * * *", enabled: false}
  waiting: {route: [hold], event: {source: [shop], detail-type: [Asked]}, input: /detail, overlap: queue}
  gathered: {route: [hold], event: {source: [shop], detail-type: [Told]}, input: /detail, debounce: 5m}
  landed: {route: [greet], s3: {bucket: data, prefix: raw/, suffix: .csv}}
  pushed: {route: [greet], webhook: {secret: hooks/github, signature: github}}
"""


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[KitCloud]:
    """The mesh."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "greetings.py").write_text("def greet(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    with kit_cloud(tmp_path / "mesh.yaml", start=START) as made:
        yield made
