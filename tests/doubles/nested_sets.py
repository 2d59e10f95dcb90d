"""Slice headers of nested sets, as a sender may write them."""

import random
from typing import Any

from asya.protocol.headers import MAX_ENCLOSING_SETS

DEPTHS = (0, 1, 2, MAX_ENCLOSING_SETS - 1, MAX_ENCLOSING_SETS, MAX_ENCLOSING_SETS + 1, 40, 500)
"""Enclosing sets of a header."""


def nested(depth: int, numbers: random.Random, actors: tuple[str, ...]) -> dict[str, Any]:
    """A header with `depth` enclosing sets, from the innermost outwards. Most are of slice 0, and some sets come again."""
    header: dict[str, Any] = {}
    for _ in range(depth + 1):
        known: dict[str, Any] = {
            "actor": numbers.choice(actors),
            "set_id": f"set-{numbers.randrange(2 * depth + 2)}",
            "origin_id": "env-1",
            "slice_index": int(numbers.random() < 1 / (depth + 2)),
            "slice_count": 2,
            "aggregation_key": "/results",
        }
        header = known | ({"outer": header} if header else {})
    return header


def notified(header: dict[str, Any]) -> set[tuple[str, str]]:
    """Fan-in actor and set of each message that the end of an envelope with a header causes."""
    found: list[dict[str, Any]] = [header]
    while "outer" in found[-1]:
        found.append(found[-1]["outer"])
    if len(found) > MAX_ENCLOSING_SETS + 1:
        return set()
    last = next((index for index, each in enumerate(found) if each["slice_index"]), len(found) - 1)
    return {(each["actor"], each["set_id"]) for each in found[: last + 1]}
