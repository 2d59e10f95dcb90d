"""The optional parts of a schedule: each adds actors to the mesh, callers to the workload, or faults."""

from collections.abc import Iterable
from random import Random
from typing import Literal, get_args

Feature = Literal[
    "pauses",
    "cancels",
    "overrides",
    "ends",
    "deadlines",
    "moves",
    "reruns",
    "deploys",
    "drains",
    "lingers",
    "waits",
    "keys",
    "outages",
    "numbers",
]
Features = frozenset[Feature]

# pauses: pause actors, x-resume, the sweep of pauses, and a caller who answers.
# cancels: tasks are canceled by the API instead of by a report.
# overrides: envelopes name other actors for those of their route.
# ends: actors of kind `end`.
# deadlines: the sweep of deadlines runs every minute.
# moves: SQS moves dead letters back to their queues (StartMessageMoveTask), in the end to mended handlers.
# reruns: handlers whose later calls differ: generators that die between frames, calls that fail or are late.
# deploys: functions of two versions of the mesh work at once.
# drains: an operator drains a heavy actor for some minutes.
# lingers: job runs of heavy actors linger.
# waits: wait actors, and the sweep that sends what is due.
# keys: several callers start one task with one idempotency key, at the same time.
# outages: a service is off for 1, 5 or 30 minutes.
# numbers: actors number their children (`child_ids: suffix`).
ALL: Features = frozenset(get_args(Feature))
# The features of a schedule, unless the caller names others.
DEFAULT: Features = ALL
# The share of schedules without any feature, and of the others with a given one.
PLAIN_SHARE = 0.15
SHARE = 0.5


def random_features(random: Random, allowed: Features = DEFAULT) -> Features:
    """Draw the features of a schedule; all features are drawn, so that their set does not change the further draws."""
    is_plain = random.random() < PLAIN_SHARE
    drawn = [feature for feature in get_args(Feature) if random.random() < SHARE]
    return frozenset() if is_plain else frozenset(drawn) & allowed


def read_features(text: str) -> Features:
    """Read a list of features, separated by commas; `all` and `none` are lists too.

    Raises:
        ValueError: a name is unknown.
    """
    names: Iterable[str] = {"all": get_args(Feature), "none": ()}.get(text, text.split(","))
    unknown = sorted(set(names) - ALL)
    if unknown:
        raise ValueError(f"unknown features: {', '.join(unknown)}; known are {', '.join(get_args(Feature))}")
    return frozenset(name for name in get_args(Feature) if name in set(names))
