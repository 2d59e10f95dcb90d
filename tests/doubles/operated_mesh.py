"""A small mesh in memory for the commands of an operator: tools that end well, fail, pause and fan out."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest import mock

from tests.doubles.kit_cloud import KitCloud, kit_cloud

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START = datetime(2026, 11, 20, 9, tzinfo=UTC)

MESH = """\
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check}
  bill: {handler: orders.bill}
  split: {handler: orders.split, can_send_to: [bill]}
  gather: {handler: orders.gather}
  clean: {spark: {job: bills.clean}}
  approve:
    kind: pause
    pause:
      prompt: Ship it?
      fields:
        - {name: approved, type: boolean, prompt: Yes or no}
        - {name: carrier, type: string, prompt: By whom, options: [post, courier], default: post}
tools:
  order:
    description: Checks and bills an order
    route: [check, bill]
    input_schema:
      type: object
      required: [country]
      properties: {country: {type: string}, total: {type: number}}
  ship:
    description: Ships an order after an approval
    route: [check, approve, bill]
  night:
    description: Bills all orders of a night
    route: [split, x-fan-in, gather]
"""
HANDLERS = """\
from asya import fan_out

RATES = {"NO": 0.25, "DE": 0.19}

def check(payload):
    return {**payload, "checked": True}

def bill(payload):
    return {**payload, "tax": payload["total"] * RATES[payload["country"]]}

def split(payload):
    return fan_out(payload["orders"], to=["bill"], into="/bills")

def gather(payload):
    return {"bills": len(payload["bills"])}
"""
JOB = """\
def clean(spark, payload):
    return payload
"""


def write_mesh(folder: Path) -> Path:
    """Write the mesh file with its code, and return its path."""
    for name, file, text in (("handlers", "orders.py", HANDLERS), ("jobs", "bills.py", JOB)):
        (folder / name).mkdir()
        (folder / name / file).write_text(text)
    (folder / "mesh.yaml").write_text(MESH)
    return folder / "mesh.yaml"


@contextmanager
def operated_mesh(folder: Path) -> Iterator[KitCloud]:
    """Run the mesh in memory, for the commands of this process.

    Its time starts at `START`, and the commands read its time.
    """
    with ExitStack() as stack:
        cloud = stack.enter_context(kit_cloud(write_mesh(folder), start=START))

        class Clock(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
                return cloud.kit.now

        for module in ("tasks.listing", "tasks.failures", "tasks.selection", "dlq.options"):
            stack.enter_context(mock.patch(f"asya_cli.{module}.datetime", Clock))
        yield cloud
