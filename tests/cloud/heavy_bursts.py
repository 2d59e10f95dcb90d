"""The envelopes that the heavy mesh gets at its start; `make test-full` sends the full size."""

from __future__ import annotations

import os
from typing import Any

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))

SHARED_RUN_IDS = [f"together-{number:04d}" for number in range(1000 if FULL else 50)]
"""Ids for `square-all`, whose envelopes share job runs."""

OWN_RUN_IDS = [f"alone-{number:04d}" for number in range(60 if FULL else 8)]
"""Ids for `square`, whose envelopes get a job run each."""

CRASH_COUNTS = {"each": 200 if FULL else 12, "together": 200 if FULL else 2}
"""The number of envelopes by actor; one envelope of each actor kills its job."""


def crash_payloads(actor: str) -> dict[str, Any]:
    """The payloads of a burst with one crashing envelope, by id."""
    names = [f"{actor}-crash-{number:03d}" for number in range(CRASH_COUNTS[actor])]
    return {name: {"name": name, "crash": name == crashing_id(actor)} for name in names}


def crashing_id(actor: str) -> str:
    """The id of the envelope that kills its job."""
    return f"{actor}-crash-{CRASH_COUNTS[actor] * 2 // 3:03d}"


def all_bursts() -> dict[tuple[str, ...], dict[str, Any]]:
    """The payloads by route and id; the largest burst is first."""
    return {
        ("square-all",): {name: {"n": n} for n, name in enumerate(SHARED_RUN_IDS)},
        ("square",): {name: {"n": n} for n, name in enumerate(OWN_RUN_IDS)},
        **{(actor,): crash_payloads(actor) for actor in CRASH_COUNTS},
    }
