"""A mesh with a task of each kind, for pictures and for tests of all pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.console.sample_operations import OPERATION_VIEWS, fill_operations
from tests.console.stub_gateway import at

if TYPE_CHECKING:
    from tests.console.stub_gateway import StubGateway

FAILED = "order-1041"
PAUSED = "order-1042"
ORIGIN = "order-1046"

VIEWS = {
    "#/tasks": ORIGIN,
    "#/tasks?status=failed": "no such price: order 1041",
    f"#/tasks/{FAILED}": "Traceback",
    f"#/tasks/{FAILED}?show=hops": "attempt 3",
    f"#/tasks/{FAILED}?show=partials": "looking up the price",
    f"#/tasks/{FAILED}?show=payloads&hop=1": "Difference",
    f"#/tasks/{FAILED}?show=logs": "no price in the list",
    f"#/tasks/{PAUSED}": "Ship it?",
    f"#/tasks/{ORIGIN}?show=children": "12 children",
    **OPERATION_VIEWS,
}
"""The views of the console, each with a text that it shows."""

_TRACEBACK = """Traceback (most recent call last):
  File "handlers/orders.py", line 14, in price_order
    price = prices[order["article"]]
KeyError: 'no such price: order 1041'
"""


def event(name: str, cursor: str, data: object) -> bytes:
    """An event of a stream."""
    return f"event: {name}\nid: {cursor}\ndata: {json.dumps(data)}\n\n".encode()


def hop(position: int, actor: str, attempt: int, *seconds: float) -> dict[str, Any]:
    """An attempt at a hop, with the seconds at which it was received, was processed and ended."""
    times = dict(zip(("received_at", "processing_at", "completed_at"), map(at, seconds), strict=False))
    return {"generation": 0, "position": position, "attempt": attempt, "actor": actor, **times}


def fill(gateway: StubGateway) -> None:
    """Add the tasks of a shop after a bad night."""
    for number in range(1000, 1036):
        gateway.add(f"order-{number}", tool="order", actor="ship-order")
    for number in range(1036, 1041):
        gateway.add(f"order-{number}", "failed", **_failure(number))
    _add_failed(gateway)
    fields = [
        {"name": "approved", "type": "boolean", "prompt": "May it leave?"},
        {"name": "carrier", "type": "string", "prompt": "By whom?", "options": ["post", "courier"], "default": "post"},
        {"name": "note", "type": "string", "required": False},
    ]
    shown = [
        {"pointer": "/total", "text": "12345678901234567.89", "type": "number"},
        {
            "pointer": "/report",
            "text": '{\n  "uri": "s3://shop-data/reports/42.html"\n…',
            "type": "object",
            "cut": True,
        },
        {"pointer": "/invoice", "text": "https://shop.example/invoices/42", "type": "string"},
        {"pointer": "/note"},
    ]
    pause = {"prompt": "Ship it?", "fields": fields, "since": at(42), "shown": shown}
    route = {"prev": ["check-order"], "curr": "approve", "next": ["ship-order"]}
    gateway.add(PAUSED, "paused", tool="order", actor="approve", pause=pause, route=route)
    gateway.add("order-1043", "running", tool="order", actor="check-order")
    gateway.add("order-1044", "pending", tool="order")
    gateway.add("order-1045", "canceled", reason="Canceled")
    _add_set(gateway)
    fill_operations(gateway)


def _failure(number: int) -> dict[str, Any]:
    error = {"type": "KeyError", "message": f"no such price: order {number}"}
    return {"tool": "order", "actor": "price-order", "error": error, "reason": "PolicyExhausted"}


def _add_failed(gateway: StubGateway) -> None:
    more = _failure(1041)
    more["error"] |= {"traceback": _TRACEBACK}
    route = {"prev": ["check-order"], "curr": "price-order", "next": ["approve", "ship-order"]}
    task = gateway.add(FAILED, "failed", attempt=3, route=route, result_uri=f"s3://shop/failed/{FAILED}.json", **more)
    base = f"/api/v1/mesh/{FAILED}"
    hops = [
        hop(0, "check-order", 1, 41.2, 41.3, 42.1),
        hop(1, "price-order", 1, 42.3, 42.4, 42.9),
        hop(1, "price-order", 2, 44.0, 44.1, 44.6),
        hop(1, "price-order", 3, 48.0, 48.1, 48.5),
    ]
    gateway.answers[f"{base}/timeline"] = {"items": hops}
    kept = [{"hop": number, "actor": actor, "generation": 0, "before": True, "after": number == 0, "size": 60}
            for number, actor in enumerate(("check-order", "price-order"))]  # fmt: skip
    gateway.answers[f"{base}/payloads"] = {"items": kept}
    before, after = ({"order": 1041, **more} for more in ({"article": "tea"}, {"article": "tea", "checked": True}))
    for number in range(2):
        pair = {"before": _stored(before), "after": _stored(after)}
        gateway.answers[f"{base}/payloads/{number}"] = {"hop": number, "actor": "a", "generation": 0, **pair}
    lines = ["checked order 1041", "no price in the list", "giving up"]
    items = [
        {"id": str(number), "at": at(42 + number), "actor": "price-order", "line": line}
        for number, line in enumerate(lines)
    ]
    gateway.answers[f"/api/v1/operations/logs/{FAILED}"] = {"items": items}
    said = {"actor": "price-order", "position": 1, "attempt": 1, "receive": 1}
    gateway.events[FAILED] = [
        event("partial", "1", {**said, "sequence": 0, "data": "looking up "}),
        event("partial", "2", {**said, "sequence": 1, "data": "the price"}),
        event("final", "3", task),
    ]


def _stored(payload: object) -> dict[str, Any]:
    text = json.dumps(payload)
    return {"text": text, "uri": "s3://shop/hops/order-1041/0/1.price-order.json", "size": len(text)}


def _add_set(gateway: StubGateway) -> None:
    route = {"prev": ["split-order"], "curr": "x-fan-in", "next": ["ship-order"]}
    gateway.add(ORIGIN, "running", actor="x-fan-in", route=route)
    for number in range(1, 13):
        status = {3: "failed", 7: "running"}.get(number, "succeeded")
        gateway.add(f"{ORIGIN}-{number}", status, parent_id=ORIGIN, root_id=ORIGIN)
    missing = [
        {"slice_index": 3, "id": f"{ORIGIN}-3", "is_lost": True},
        {"slice_index": 7, "id": f"{ORIGIN}-7"},
        {"slice_index": 13, "id": f"{ORIGIN}-13"},
    ]
    counts = {"set_id": "0db8e893", "position": 1, "slice_count": 14, "arrived": 11}
    gateway.answers[f"/api/v1/mesh/{ORIGIN}/set"] = {"set": {**counts, "missing": missing, "due_at": at(600)}}
