"""The envelopes of a chaos run, drawn from its seed: their routes, and the results that they must have."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal

from asya.protocol.ids import child_id

Flow = Literal["light", "heavy", "set", "heavy set", "pause"]

SHARES: dict[Flow, int] = {"light": 50, "heavy": 22, "set": 14, "heavy set": 2, "pause": 12}
"""The share of each flow, in percent."""

_ROUTES: dict[Flow, tuple[str, ...]] = {
    "light": ("price", "publish"),
    "heavy": ("clean", "square", "rank", "publish"),
    "set": ("split", "gather", "publish"),
    "heavy set": ("split", "gather", "publish"),
    "pause": ("approve", "publish"),
}
_LAST_START: dict[Flow, float] = {"light": 1.0, "heavy": 0.7, "set": 0.9, "heavy set": 0.5, "pause": 0.8}
"""The last start of each flow, as a part of the load: flows that take longer start earlier."""
_LARGEST_SET = 6
FIRST = "intake"
SPLIT_POSITION = 1
DEADLINE_SECONDS = 7200
"""Far enough away that no fault makes an envelope late; pauses move it."""


@dataclass(frozen=True)
class ChaosEnvelope:
    """An envelope to start, and what must become of it."""

    name: str
    flow: Flow
    by_gateway: bool
    """Started by POST, which gives it an id; otherwise by SendMessage, with its name as its id."""
    start: float
    """Seconds after the beginning of the load."""
    deadline: bool
    n: int
    failures: int
    """The attempts at `price` that fail."""
    items: int
    """The slices of its set besides the origin; 0 for other flows."""

    @property
    def route(self) -> list[str]:
        """The actors after the first one."""
        return list(_ROUTES[self.flow])

    @property
    def payload(self) -> dict[str, Any]:
        """The payload at the first actor, without the plan of a route."""
        values: dict[str, Any] = {"name": self.name, "n": self.n}
        if self.flow == "light":
            values |= {"failures": self.failures}
        if self.items:
            values |= {"items": self.items, "through": [self._slice_actor]}
        return values

    @property
    def result(self) -> dict[str, Any]:
        """The payload at the end."""
        trail = [FIRST, *(each for each in _ROUTES[self.flow] if each not in {"split", "gather", "approve"})]
        values = {**self.payload, "trail": trail}
        if self.flow == "light":
            values["price"] = self.n * 3
        elif self.flow == "heavy":
            squared = (self.n + 1) ** 2
            values |= {"cleaned": self.n + 1, "squared": squared, "rank": squared % 7}
        elif self.flow == "pause":
            values["approved"] = True
        else:
            values["results"] = [self._slice_result(n) for n in range(self.items)]
        return values

    @property
    def effects(self) -> dict[str, set[str]]:
        """The names under which each actor must have noted a call."""
        effects = {"publish": {self.name}}
        if self.flow == "light":
            effects["price"] = {self.name}
        elif self.flow == "set":
            effects["score"] = {f"{self.name}.{n}" for n in range(self.items)}
        return effects

    def children(self, envelope_id: str) -> list[str]:
        """The ids of its slices, which are tasks of their own."""
        return [child_id(envelope_id, 0, SPLIT_POSITION, index + 1) for index in range(self.items)]

    @property
    def _slice_actor(self) -> str:
        return "score" if self.flow == "set" else "clean"

    def _slice_result(self, n: int) -> dict[str, Any]:
        values: dict[str, Any] = {"name": f"{self.name}.{n}", "n": n, "trail": [self._slice_actor]}
        return values | ({"score": n * 10} if self.flow == "set" else {"cleaned": n + 1})


def draw_envelopes(seed: int, count: int, load_seconds: float, prefix: str = "chaos") -> list[ChaosEnvelope]:
    """Draw the envelopes of a run, in the order of their starts. Each flow has its share, and at least one envelope."""
    numbers = random.Random(f"envelopes {seed}")
    rest = count - len(SHARES)
    flows = list(SHARES) + numbers.choices(list(SHARES), list(SHARES.values()), k=max(0, rest))
    envelopes = [
        _draw(numbers, f"{prefix}-{number:04d}", flow, load_seconds) for number, flow in enumerate(flows[:count])
    ]
    return sorted(envelopes, key=lambda each: each.start)


def _draw(numbers: random.Random, name: str, flow: Flow, load_seconds: float) -> ChaosEnvelope:
    by_gateway = numbers.random() < 0.5
    return ChaosEnvelope(
        name=name,
        flow=flow,
        by_gateway=by_gateway,
        start=numbers.uniform(0, load_seconds * _LAST_START[flow]),
        deadline=by_gateway and numbers.random() < 0.5,
        n=numbers.randrange(1000),
        failures=numbers.choice([0, 0, 0, 1, 2]),
        items=numbers.randint(1, _LARGEST_SET) if "set" in flow else 0,
    )
