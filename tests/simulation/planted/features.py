"""Planted mistakes that only schedules with certain features show: overrides, pauses and deadlines."""

from functools import partial
from typing import Any

from asya.capabilities.pauses import resuming
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes
from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.resume_input import InvalidInputError
from asya.ends.aws.end_claims import ClaimResult, EndClaims
from asya.ends.lambdas import ends
from asya.gateway.routes import resume
from asya.protocol.task import TaskRecord
from asya.sidecar import arrival, outcome
from asya.tasks.aws import tasks
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, substitute, wrap

CANCELS: Features = frozenset({"cancels"})
PAUSES: Features = frozenset({"pauses", "cancels"})
DEADLINES: Features = PAUSES | {"deadlines"}
OVERRIDES: Features = frozenset({"overrides"})


def _epoch_of_any_record(record: Any) -> int:
    return record.pause_epoch or 0


def _start_ignoring_state(real: Any, hop: Any, state: Any, **more: Any) -> Any:
    return real(hop, None, **more)


def _start_late_without_state(real: Any, hop: Any, state: Any, *, now: Any, **more: Any) -> Any:
    is_late = hop.deadline is not None and hop.deadline - now < arrival.MIN_TIME_LEFT
    return real(hop, None if is_late else state, now=now, **more)


def _ignore_pauses_after_ends(real: Any, record: TaskRecord | None, event: Any, **more: Any) -> TaskRecord:
    merged: TaskRecord = real(record, event, **more)
    is_late = record is not None and record.is_terminal and event.status == "paused" and merged.is_terminal
    return record if is_late and record is not None else merged


def _complete_any_answers(real: Any, fields: Any, answers: Any) -> Any:
    try:
        return real(fields, answers)
    except InvalidInputError:
        return dict(answers)


def _complete_known_answers(real: Any, fields: Any, answers: Any) -> Any:
    known = {field.name for field in fields}
    return real(fields, {name: value for name, value in answers.items() if name in known or not known})


def _take_without_calls(real: Any, self: EndClaims, claim: Any, **more: Any) -> Any:
    return ClaimResult("taken", claim, claim.generation) if claim.is_by_call else real(self, claim, **more)


def _keep_cancellations(real: Any, record: TaskRecord | None, event: Any, **more: Any) -> TaskRecord:
    merged: TaskRecord = real(record, event, **more)
    is_replaced = record is not None and record.status == "canceled" and merged.status in ("succeeded", "failed")
    return record if is_replaced and record is not None else merged


def _slices_but_canceled_at_pauses(real: Any, mesh: Any, *ended: Any) -> Any:
    status = ended[0].status
    is_pause = status.phase == "canceled" and status.actor in mesh.actors and mesh.actors[status.actor].kind == "pause"
    return () if is_pause else real(mesh, *ended)


_at_pauses = partial(Mistake, kind="fault-free", features=PAUSES)

MISTAKES = (
    Mistake(
        "ignores overrides at routing",
        substitute(outcome, "actual_actor", lambda _, actor: actor),
        "fault-free",
        seed=7,
        features=OVERRIDES,
    ),
    _at_pauses(
        "accepts a second answer to a pause",
        (
            substitute(resume, "check_paused", _epoch_of_any_record),
            substitute(resuming, "check_paused", _epoch_of_any_record),
        ),
        seed=7,
    ),
    _at_pauses(
        "takes answers that do not fit their pause", wrap(resuming, "complete_answers", _complete_any_answers), seed=10
    ),
    _at_pauses(
        "drops answers that a pause does not ask for",
        wrap(resuming, "complete_answers", _complete_known_answers),
        seed=14,
    ),
    _at_pauses("releases no paused envelopes", substitute(PauseReleases, "finish", lambda *_: None)),
    _at_pauses(
        "puts no answers into the payload", substitute(resuming, "merge_answers", lambda payload, *_: payload), seed=2
    ),
    _at_pauses(
        "forgets the time that was left at the pause", substitute(resuming, "new_deadline", lambda *_: None), seed=11
    ),
    _at_pauses("notifies nobody of a pause", substitute(PausedEnvelopes, "is_notified", lambda *_: True), seed=7),
    Mistake(
        "lets late copies of a paused envelope go on",
        wrap(arrival, "start", _start_ignoring_state),
        "repeats",
        seed=3,
        features=PAUSES,
    ),
    Mistake(
        "cancels a task in its record only, without a claim",
        (
            wrap(EndClaims, "take", _take_without_calls),
            substitute(EndClaims, "holder", lambda *_: None),
            wrap(tasks, "merge", _keep_cancellations),
        ),
        features=CANCELS,
        seed=10,
    ),
    _at_pauses("notes no pause in the item of the claim", substitute(EndClaims, "note_pause", lambda *_, **__: None)),
    Mistake(
        "checks the deadline before the state of the task",
        wrap(arrival, "start", _start_late_without_state),
        "errors",
        seed=1051,
        features=frozenset({"pauses", "deadlines"}),
    ),
    Mistake(
        "forgets the envelope of a task that was canceled while it paused",
        wrap(tasks, "merge", _ignore_pauses_after_ends),
        "crashes",
        seed=10,
        features=DEADLINES,
    ),
    Mistake(
        "tells no set that its slice was canceled at a pause",
        wrap(ends, "slice_end_deliveries", _slices_but_canceled_at_pauses),
        "repeats",
        seed=107,
        features=DEADLINES,
    ),
)
