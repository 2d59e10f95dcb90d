"""Numbers, dead letters and job runs of the sample mesh, as operators see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.console.stub_gateway import at

if TYPE_CHECKING:
    from tests.console.stub_gateway import StubGateway

OPERATIONS = "/api/v1/operations"
MESH = f"{OPERATIONS}/mesh"
RUN = "asya.shop.forecast.0000000003"

OPERATION_VIEWS = {
    "#/mesh": "Needs attention",
    "#/mesh?tool=order": "Needs attention",
    "#/mesh/price-order": "Recent errors",
    "#/mesh/price-order?show=dead-letters": "3 dead letters",
    "#/mesh/price-order?show=logs": "no price in the list",
    "#/dead-letters": "3 dead letters",
    "#/dead-letters?actor=price-order": "3 dead letters",
    "#/runs": "list price",
    "#/runs?actor=forecast": "list price",
    f"#/runs/{RUN}": "The driver's log",
    f"#/runs/{RUN}?show=logs&source=driver": "java.lang.OutOfMemoryError",
}
"""The views of the mesh and of runs, each with a text that it shows."""

OPEN_CIRCUIT = {
    "since": at(-60), "next_call_at": at(60), "error": "ConnectionError: no answer", "failures": 5, "window": 60.0
}  # fmt: skip
UNREAD = {
    "reason": "event source mapping disabled",
    "repair": "aws lambda update-event-source-mapping --uuid 7f3a --enabled",
}
ROUTES = {
    "order": ["check-order", "price-order", "approve", "ship-order"],
    "forecast": ["split-order", "forecast", "x-fan-in", "report"],
}


def numbers(name: str, kind: str = "handler", **more: Any) -> dict[str, Any]:
    """The numbers of an actor without work."""
    unknown = dict.fromkeys(("oldest_seconds", "per_minute", "failing_per_minute", "circuit", "runs"))
    return {"name": name, "kind": kind, "waiting": 0, "in_flight": 0, "dead_letters": 0, **unknown, **more}


def mesh_numbers() -> dict[str, Any]:
    """The mesh in the morning after a bad night."""
    runs = {"pending": 240, "running": 1, "lingering": 1, "is_drained": False}
    busy = {"per_minute": 42.4, "failing_per_minute": 0.0, "oldest_seconds": 2.0}
    actors = [
        numbers("approve", "pause", **busy, waiting=1),
        numbers("check-order", **busy, waiting=12, in_flight=4),
        numbers("forecast", "spark", runs=runs, waiting=3, oldest_seconds=754.0),
        numbers(
            "price-order",
            **busy | {"failing_per_minute": 6.2},
            dead_letters=3,
            circuit="open",
            open_circuit=OPEN_CIRCUIT,
        ),
        numbers("report", **busy),
        numbers("ship-order", **busy, in_flight=1, circuit="closed"),
        numbers("split-order", **busy | {"waiting": 4}, not_read=UNREAD),
        numbers("x-fan-in", "fan_in", **busy),
        numbers("x-sink", "end", **busy),
        numbers("x-sump", "end"),
    ]
    edges = [
        {"from": source, "to": target, "tool": tool}
        for tool, route in ROUTES.items()
        for source, target in zip(route, (*route[1:], "x-sink"), strict=True)
    ]
    tools = [{"name": name, "route": route} for name, route in ROUTES.items()]
    edges.append({"from": "price-order", "to": "report"})
    return {"namespace": "shop", "at": at(100), "actors": actors, "edges": edges, "tools": tools}


def actor_details(name: str = "price-order") -> dict[str, Any]:
    """The settings of an actor, and what failed there."""
    policy = {"max_attempts": 3, "backoff": "exponential", "initial_delay": 1.5, "jitter": True, "max_interval": 60.0}
    fixed = {"max_attempts": 1, "backoff": "constant", "initial_delay": 1.0, "jitter": False, "max_interval": None}
    error = {"reason": "PolicyExhausted", "type": "KeyError"}
    return {
        "numbers": next(each for each in mesh_numbers()["actors"] if each["name"] == name),
        "queue": {"visibility_timeout": 180, "retention": 345600, "max_receives": 5},
        "timeout": 30.0,
        "batch_size": 1,
        "frames": "streamed",
        "keep_input": False,
        "deduplicate": True,
        "can_send_to": ["approve", "report"],
        "secrets": ["PRICE_SERVICE_KEY"],
        "access": [
            {"kind": "bucket", "name": "data", "location": None, "read": ["prices/*"], "write": ["out/*", "log/*"]},
            {"kind": "statement", "name": "", "read": [], "write": [], "statement": {"Action": ["sns:Publish"]}},
        ],
        "policies": {
            "default": {**policy, "max_duration": 600.0, "then_route": None},
            "wrong": {**fixed, "max_duration": None, "then_route": ["report"]},
        },
        "rules": [{"errors": ["ValueError", "KeyError"], "policy": "wrong"}],
        "circuit_breaker": {"failures": 5, "window": 60.0, "open_for": 120.0},
        "durations": {"median": 84.2, "p95": 1204.0},
        "recent_errors": [
            {"id": f"order-{number}", "at": at(number - 1000), **error, "message": f"no such price: order {number}"}
            for number in (1041, 1040, 1039)
        ],
    }


def dead_letter(number: int, **more: Any) -> dict[str, Any]:
    """The message of an order that failed."""
    body = json.dumps({"id": f"order-{number}", "payload": {"article": "tea"}}, separators=(",", ":"))
    return {
        "actor": "price-order", "id": f"order-{number}", "message_id": f"message-{number}", "hop": 1, "generation": 0,
        "sent_at": at(number - 1000), "receives": 6, "deliveries": 5, "task": "failed", "reason": "PolicyExhausted",
        "error": {"type": "KeyError", "message": f"no such price: order {number}"}, "body": body, "size": len(body), **more,
    }  # fmt: skip


def letter_page(*letters: dict[str, Any]) -> dict[str, Any]:
    """All dead letters of the actor."""
    queues = [{"actor": "price-order", "visible": len(letters), "hidden": 0}] if letters else []
    return {"items": list(letters), "queues": queues, "has_more": False}


def usage(share: float = 1.0) -> dict[str, Any]:
    """The resources of a run, or a share of them."""
    hours = {"vcpu_hours": 0.84 * share, "memory_gb_hours": 3.36 * share, "storage_gb_hours": 0.0}
    return {**hours, "billed": True}


PRICES = "$0.042094 per vCPU-hour, $0.004628 per GB-hour (list price of ARM64 in us-east-1)"


OUTCOMES = {"succeeded": 97, "failed": 1, "again": 2}


def run_line(number: int, state: str, **more: Any) -> dict[str, Any]:
    """A run of a list."""
    line = {"run_id": f"asya.shop.forecast.{number:010}", "actor": "forecast", "state": state, "is_open": False}
    rest = {"envelopes": 100, "formed_at": at(number), "usage": None, "dollars": None}
    return {**line, **rest, **more}


def run_page(*lines: dict[str, Any]) -> dict[str, Any]:
    """All runs of the mesh."""
    return {"items": list(lines), "prices": PRICES}


def member(number: int, outcome: str, **more: Any) -> dict[str, Any]:
    """An envelope of a run."""
    line = {"id": f"region-{number}", "generation": 0, "position": 1, "attempt": 1, "outcome": outcome, "error": ""}
    return {**line, "milliseconds": 0.0, "usage": usage(0.01), "dollars": 0.0005, "work": None, **more}


def run_details(**more: Any) -> dict[str, Any]:
    """A run that one of its envelopes has killed."""
    error = "ValueError: no rows in region 1"
    return {
        "run_id": RUN,
        "actor": "forecast",
        "state": "partly failed",
        "mesh_state": "closed",
        "emr_state": "FAILED",
        "outcomes": OUTCOMES,
        "job_run_id": "00fabcd",
        "details": "Job failed: driver killed by signal 9",
        "formed_at": at(3),
        "running_at": at(63),
        "envelopes": 100,
        "attempts": ["1"],
        "usage": usage(),
        "dollars": 0.0509,
        "prices": PRICES,
        "verdict": "region-0 was the first and only envelope at work, so it is charged; charged: 1, run again uncharged: 2",
        "heartbeat": {"at": at(80), "beat": 4, "done": 97, "stages": [], "executors": 2},
        "shared": "equally",
        "size": "",
        "work": None,
        "members": [
            *(member(number, "succeeded", milliseconds=1200.0) for number in range(3, 100)),
            *(member(number, "runs again") for number in (1, 2)),
            member(0, "charged", error=error),
        ],
        "problem": "",
        "log_uri": "s3://shop-bucket/runs/forecast/3/logs/applications/00app/jobs/00fabcd/SPARK_DRIVER/stderr.gz",
        "next_cursor": None,
        **more,
    }


def run_logs() -> dict[str, Any]:
    """What the driver and an executor have written."""
    written = [("driver", "stderr", "java.lang.OutOfMemoryError: Java heap space"), ("1", "stdout", "3 rows")]
    items = [
        {"id": worker, "actor": "forecast", "line": line, "run_id": RUN, "worker": worker, "stream": stream}
        for worker, stream, line in written
    ]
    return {"items": items}


def fill_operations(gateway: StubGateway) -> None:
    """Add what operators see."""
    lines = ["price of order 1041", '{"level":"ERROR","message":"no price in the list"}']
    base = f"{OPERATIONS}/actors/price-order"
    letters = [dead_letter(1041), dead_letter(1040), dead_letter(1039, body="not an envelope", truncated=True)]
    gateway.answers |= {
        MESH: mesh_numbers(),
        base: actor_details(),
        f"{base}/logs": {
            "items": [
                {"id": str(number), "at": at(42 + number), "actor": "price-order", "line": line}
                for number, line in enumerate(lines)
            ]
        },
        f"{OPERATIONS}/dead-letters": letter_page(*letters),
        f"{OPERATIONS}/runs": run_page(
            run_line(5, "running", emr_state="RUNNING, resident", is_open=True),
            run_line(4, "succeeded", emr_state="SUCCESS", outcomes={"succeeded": 100}, usage=usage(), dollars=0.0509),
            run_line(3, "partly failed", emr_state="FAILED", outcomes=OUTCOMES, usage=usage(), dollars=0.0509),
        ),
        f"{OPERATIONS}/runs/{RUN}": run_details(),
        f"{OPERATIONS}/runs/{RUN}/logs": run_logs(),
    }
