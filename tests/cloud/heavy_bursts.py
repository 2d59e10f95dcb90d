"""What is sent to the mesh of heavy actors at once, as soon as it is there; in full size by `make test-full`."""

from __future__ import annotations

import os
from typing import Any

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))

TOGETHER = [f"together-{number:04d}" for number in range(1000 if FULL else 100)]
"""For one run, `square-all`."""

ALONE = [f"alone-{number:04d}" for number in range(60 if FULL else 8)]
"""For a run each, `square`."""

DEADLY = {"each": 200 if FULL else 20, "together": 200 if FULL else 4}
"""How many envelopes come to an actor whose job one of them kills."""


def deadly(actor: str) -> dict[str, Any]:
    """The payloads of such a burst, by envelope."""
    names = [f"{actor}-deadly-{number:03d}" for number in range(DEADLY[actor])]
    return {name: {"name": name, "deadly": name == culprit(actor)} for name in names}


def culprit(actor: str) -> str:
    """The envelope that kills."""
    return f"{actor}-deadly-{DEADLY[actor] * 2 // 3:03d}"


def everything() -> dict[tuple[str, ...], dict[str, Any]]:
    """All bursts, by their routes, the one with the most to come first."""
    return {
        ("square-all",): {name: {"n": n} for n, name in enumerate(TOGETHER)},
        ("square",): {name: {"n": n} for n, name in enumerate(ALONE)},
        **{(actor,): deadly(actor) for actor in DEADLY},
    }
