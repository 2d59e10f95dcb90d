"""A mesh in a folder, for the commands about mesh files."""

from __future__ import annotations

from pathlib import Path

import pytest

MESH = """\
namespace: shop
code: handlers
jobs: jobs
defaults:
  resiliency:
    policies: {repair: {max_attempts: 2, then_route: [mend, check]}}
actors:
  check: {handler: orders.check, can_send_to: [bill]}
  bill: {spark: {job: bills.bill}}
  mend: {handler: orders.mend, resiliency: {policies: {}}}
  ask: {kind: pause}
tools:
  check:
    description: Checks and bills an order
    route: [check, ask, bill, x-fan-in]
"""
HANDLERS = """\
from dataclasses import dataclass

@dataclass
class Order:
    id: str
    total: int

def check(order: Order) -> Order:
    return order

def mend(payload):
    return payload
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for folder, name, text in (
        ("handlers", "orders", HANDLERS),
        ("jobs", "bills", "def bill(spark, payload):\n    return payload\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(text)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path / "mesh.yaml"
