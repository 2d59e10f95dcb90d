"""A mesh with a task of each kind, for pictures and for tests of all pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.console.stub_gateway import StubGateway

VIEWS = {
    "#/tasks": "order-1041",
    "#/tasks?status=failed": "no such price: order 1041",
}
"""The views of the console, each with a text that it shows."""


def fill(gateway: StubGateway) -> None:
    """Add the tasks of a shop after a bad night."""
    for number in range(1000, 1036):
        gateway.add(f"order-{number}", tool="order", actor="ship-order")
    for number in range(1036, 1042):
        error = {"type": "KeyError", "message": f"no such price: order {number}"}
        gateway.add(f"order-{number}", "failed", tool="order", actor="price-order", error=error, reason="RuntimeError")
    pause = {"prompt": "Ship it?", "fields": [], "since": "2026-11-25T12:00:41Z"}
    gateway.add("order-1042", "paused", tool="order", actor="approve", pause=pause)
    gateway.add("order-1043", "running", tool="order", actor="check-order")
    gateway.add("order-1044", "pending", tool="order")
    gateway.add("order-1045", "canceled", reason="Canceled")
