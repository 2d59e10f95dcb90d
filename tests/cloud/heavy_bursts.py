"""What is sent to the mesh of heavy actors at once, as soon as it is there; in full size by `make test-full`."""

from __future__ import annotations

import os
from typing import Any

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))

SHARED_RUN_IDS = [f"together-{number:04d}" for number in range(1000 if FULL else 100)]
"""For one run, `square-all`."""

OWN_RUN_IDS = [f"alone-{number:04d}" for number in range(60 if FULL else 8)]
"""For a run each, `square`."""

CRASH_COUNTS = {"each": 200 if FULL else 20, "together": 200 if FULL else 4}
"""How many envelopes come to an actor whose job one of them kills."""


def crash_payloads(actor: str) -> dict[str, Any]:
    """The payloads of such a burst, by envelope."""
    names = [f"{actor}-deadly-{number:03d}" for number in range(CRASH_COUNTS[actor])]
    return {name: {"name": name, "deadly": name == crashing_id(actor)} for name in names}


def crashing_id(actor: str) -> str:
    """The envelope that kills."""
    return f"{actor}-deadly-{CRASH_COUNTS[actor] * 2 // 3:03d}"


def all_bursts() -> dict[tuple[str, ...], dict[str, Any]]:
    """All bursts, by their routes, the one with the most to come first."""
    return {
        ("square-all",): {name: {"n": n} for n, name in enumerate(SHARED_RUN_IDS)},
        ("square",): {name: {"n": n} for n, name in enumerate(OWN_RUN_IDS)},
        **{(actor,): crash_payloads(actor) for actor in CRASH_COUNTS},
    }
