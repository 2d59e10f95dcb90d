"""A small shop, as a data engineer would write it."""

from pathlib import Path

import pytest

MESH = """
namespace: shop
code: handlers
defaults:
  resiliency:
    policies:
      later: {max_attempts: 3, backoff: exponential, initial_delay: 1s, max_interval: 60s}
    rules:
      - {errors: [ConnectionError], policy: later}
actors:
  check: {handler: orders.check, env: {CURRENCY: EUR}}
  price: {handler: orders.price, secrets: {API_KEY: shop/key}}
  bill: {handler: orders.bill}
  split: {handler: orders.split, can_send_to: [price, bill]}
  frames: {handler: orders.frames}
  crash: {handler: orders.crash}
  talk: {handler: orders.talk}
  ship: {handler: orders.ship, max_receives: 1, can_send_to: [bill]}
  approve:
    kind: pause
    pause:
      prompt: Ship it?
      fields: [{name: approved, type: boolean, prompt: Yes or no}]
tools:
  order:
    description: Orders something
    route: [check, price, bill]
    input_schema: {type: object, required: [total], properties: {total: {type: number}}}
"""
HANDLERS = """
import os
from asya import data, fan_out

CURRENCY = os.environ["CURRENCY"] if "CURRENCY" in os.environ else None

def check(payload):
    return {**payload, "currency": os.environ["CURRENCY"], "at_import": CURRENCY}

def price(payload):
    data.write("prices/last.txt", b"2")
    return {**payload, "price": payload["total"] * 2, "key": os.environ.get("API_KEY")}

def bill(payload):
    return {**payload, "billed": True}

def split(payload):
    return fan_out([{"total": total} for total in payload["totals"]], to=["price"], into="/prices")

def frames(payload):
    yield {"n": 1}
    yield {"n": 2}

def crash(payload):
    raise SystemExit(3)

def talk(payload):
    for number in range(2):
        yield "FLY", {"number": number}
    yield payload

def ship(payload):
    if payload.get("exits"):
        os._exit(9)
    return {**payload, "shipped": True}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The mesh file of the shop."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "orders.py").write_text(HANDLERS)
    path = tmp_path / "mesh.yaml"
    path.write_text(MESH)
    return path
