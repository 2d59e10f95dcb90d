"""Planted mistakes that only schedules with certain features show (see `tests.simulation.planted`)."""

from typing import Any

from asya.gateway.routes import resume
from asya.pause import resuming
from asya.pause.aws.paused_envelopes import PausedEnvelopes
from asya.pause.lambdas.pause_release import PauseReleases
from asya.sidecar import arrival, outcome
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, substitute, wrap

PAUSES: Features = frozenset({"pauses", "cancels"})
OVERRIDES: Features = frozenset({"overrides"})


def _epoch_of_any_record(record: Any) -> int:
    return record.pause_epoch or 0


def _start_ignoring_state(real: Any, hop: Any, state: Any, **more: Any) -> Any:
    return real(hop, None, **more)


MISTAKES = (
    Mistake(
        "ignores overrides at routing",
        substitute(outcome, "actual_actor", lambda _, actor: actor),
        "fault-free",
        seed=3,
        features=OVERRIDES,
    ),
    Mistake(
        "accepts a second answer to a pause",
        (
            substitute(resume, "check_paused", _epoch_of_any_record),
            substitute(resuming, "check_paused", _epoch_of_any_record),
        ),
        "fault-free",
        seed=7,
        features=PAUSES,
    ),
    Mistake(
        "releases no paused envelopes",
        substitute(PauseReleases, "finish", lambda *_: None),
        "fault-free",
        features=PAUSES,
    ),
    Mistake(
        "puts no answers into the payload",
        substitute(resuming, "merge_answers", lambda payload, *_: payload),
        "fault-free",
        features=PAUSES,
    ),
    Mistake(
        "forgets the time that was left at the pause",
        substitute(resuming, "deadline_after", lambda *_: None),
        "fault-free",
        seed=7,
        features=PAUSES,
    ),
    Mistake(
        "notifies nobody of a pause",
        substitute(PausedEnvelopes, "is_notified", lambda *_: True),
        "fault-free",
        seed=7,
        features=PAUSES,
    ),
    Mistake(
        "lets late copies of a paused envelope go on",
        wrap(arrival, "start", _start_ignoring_state),
        "repeats",
        seed=3,
        features=PAUSES,
    ),
)
