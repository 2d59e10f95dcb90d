"""Light actors that append their names to the trail of the payload; some write a note of each call."""

import time
from collections.abc import Iterator
from typing import Any

from asya import data, fan_out

Payload = dict[str, Any]


def _note(payload: Payload, actor: str) -> None:
    """Write a note to the data of the mesh: the effect of a call."""
    data.write(f"effects/{actor}/{payload['name']}/{time.time_ns()}", b"done")


def intake(payload: Payload) -> Iterator[Any]:
    """Replace the route by the plan of the payload, if it has one: the gateway starts one actor only."""
    result = {**payload, "trail": ["intake"]}
    plan = result.pop("plan", None)
    if plan is not None:
        yield ("SET", ".route.next", plan)
    yield result


def price(payload: Payload) -> Iterator[Any]:
    """Fail in the first attempts, if the payload says so."""
    attempt = yield ("GET", ".status.attempt")
    if attempt <= payload.get("failures", 0):
        raise ConnectionError(f"no price in attempt {attempt}")
    _note(payload, "price")
    yield {**payload, "price": payload["n"] * 3, "trail": [*payload["trail"], "price"]}


def split(payload: Payload) -> Iterator[Any]:
    """Open a set with a slice for each item."""
    items = [{"name": f"{payload['name']}.{n}", "n": n, "trail": []} for n in range(payload["items"])]
    yield from fan_out(items, to=payload["through"], at="gather")


def score(payload: Payload) -> Payload:
    """Score an item of a set."""
    _note(payload, "score")
    return {**payload, "score": payload["n"] * 10, "trail": [*payload["trail"], "score"]}


def publish(payload: Payload) -> Payload:
    """End a route."""
    _note(payload, "publish")
    return {**payload, "trail": [*payload["trail"], "publish"]}
