"""A small mesh in memory for the commands of an operator: tools that end well, fail, pause and fan out."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya_cli.clock import using
from tests.cloud.environment import environment
from tests.doubles.command_clock import SetClock
from tests.doubles.kit_cloud import KitCloud, KitConnection, kit_cloud

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
  fetch:
    handler: orders.fetch
    resiliency:
      policies: {later: {max_attempts: 3, initial_delay: 1h}}
      rules: [{errors: ConnectionError, policy: later}]
  clean: {spark: {job: bills.clean}}
  approve:
    kind: pause
    pause:
      prompt: Ship it?
      fields:
        - {name: approved, type: boolean, prompt: Yes or no}
        - {name: carrier, type: string, prompt: By whom, options: [post, courier], default: post}
stages: {prod: {}}
triggers:
  yearly: {route: [check], cron: "0 2 1 1 *", timezone: Europe/Oslo, payload: {country: "NO"}}
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

def fetch(payload):
    raise ConnectionError("the shop is closed")

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


class Logs:
    """CloudWatch Logs with two lines of the actor `check`: one of the mesh, and one that its handler has printed."""

    class exceptions:  # noqa: N801 - the name of boto3
        class ResourceNotFoundException(Exception):  # noqa: N818
            """There is no such group."""

    def filter_log_events(self, *, logGroupName: str, **_: object) -> dict[str, Any]:  # noqa: N803
        if logGroupName != "/aws/lambda/asya-shop-check":
            raise self.exceptions.ResourceNotFoundException
        line = {"level": "INFO", "message": "envelope done", "envelope_id": "order-1", "service": "check"}
        moment = int(START.timestamp() * 1000)
        texts = (json.dumps(line), "checking NO")
        return {
            "events": [
                {"timestamp": moment + number, "message": text, "eventId": str(number), "logStreamName": "s"}
                for number, text in enumerate(texts)
            ]
        }

    def get_paginator(self, _action: str) -> Any:
        return SimpleNamespace(paginate=lambda **request: (self.filter_log_events(**request) for _ in range(1)))


@contextmanager
def operated_mesh(folder: Path) -> Iterator[KitCloud]:
    """Run the mesh in memory, for the commands of this process.

    Its time starts at `START`, and the commands read its time.
    """
    with ExitStack() as stack:
        cloud = stack.enter_context(kit_cloud(write_mesh(folder), start=START))

        stack.enter_context(using(SetClock(lambda: cloud.kit.now, environment().monotonic, environment().sleep)))
        # The mesh runs on this thread alone.
        serial = nullcontext(SimpleNamespace(map=map))
        stack.enter_context(mock.patch("asya_cli.report.summary.ThreadPoolExecutor", lambda _: serial))
        stack.enter_context(mock.patch.object(KitConnection, "logs", lambda _: Logs(), create=True))
        yield cloud
