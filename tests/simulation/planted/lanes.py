"""Planted mistakes about the lanes of triggers (`protocol §16.lane`, `§16.overlap`, `§16.window`)."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from asya.capabilities.triggers import lane_changes, lanes, messages
from asya.capabilities.triggers.aws import queue_senders
from asya.capabilities.triggers.aws.lane_store import LaneStore
from asya.capabilities.triggers.aws.queue_senders import LaneChecks
from asya.capabilities.triggers.lambdas import lane_queue
from asya.capabilities.triggers.lambdas.starts import LaneStarts, Performed
from asya.capabilities.triggers.lambdas.sweeps import LaneSweep
from asya.capabilities.triggers.lane_changes import Change
from asya.capabilities.triggers.lanes import Lane, LaneFullError
from asya.protocol.times import format_time
from asya.testing.dynamo.tables import MemoryDynamo
from tests.simulation.mistake import Patch, everywhere, found_by, substitute, wrap

_SCHEDULES = "simulation/test_trigger_lanes.py::test_16_random_schedules_keep_the_promises_of_overlap"
_LANES = "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py"


def _without_condition(text: str, sort_key: str) -> Patch:
    """Transactions write the items with this sort key although their condition, which has this text, fails."""

    def write(real: Any, self: MemoryDynamo, **request: Any) -> Any:
        for part in request["TransactItems"]:
            put = part.get("Put", {})
            if put.get("Item", {}).get("sk", {}).get("S") == sort_key and text in put.get("ConditionExpression", ""):
                del put["ConditionExpression"]
                put.pop("ExpressionAttributeValues", None)
        return real(self, **request)

    return wrap(MemoryDynamo, "transact_write_items", write)


def _settle_beside_a_running_task(real: Any, lane: Lane, *args: Any, **more: Any) -> Any:
    return real(replace(lane, running=None) if lane.queued else lane, *args, **more)


def _forget_at_once(real: Any, self: LaneStarts, key: Any, lane: Lane, trigger: Any) -> Performed:
    done: Performed = real(self, key, lane, trigger)
    for start in lane.starting:
        self.store.forget(key, start)
    return done


def _start_before_the_cancellation(real: Any, self: LaneStarts, key: Any, lane: Lane, trigger: Any) -> Performed:
    first: Performed = real(self, key, replace(lane, canceling=()), trigger)
    last: Performed = real(self, key, replace(lane, starting=()), trigger)
    return Performed(first.started, last.canceled, first.failed)


def _keep_the_first(real: Any, lane: Lane, trigger: Any, *args: Any) -> Change:
    change: Change = real(lane, trigger, *args)
    if trigger.debounce is None or change.opens:
        return change
    return Change(change.lane, change.outcome)


def _extend_for_ever(real: Any, lane: Lane, trigger: Any, entry: Any, now: Any) -> Change:
    change: Change = real(lane, trigger, entry, now)
    window = change.lane.window
    if window is None or trigger.debounce is None:
        return change
    due = format_time(now + timedelta(seconds=trigger.debounce))
    longer = replace(change.lane, window=replace(window, due=due))
    return Change(longer, change.outcome, change.kept_for, opens=change.opens)


def _one_more_in_a_batch(real: Any, window: Any, trigger: Any, *args: Any) -> Any:
    return real(replace(window, count=window.count - 1), trigger, *args)


def _drop_what_finds_no_place(real: Any, lane: Lane, start: Any) -> Change:
    try:
        change: Change = real(lane, start)
    except LaneFullError:
        return Change(lane, "skipped")
    return change


def _order_by_arrival(real: Any, occurrence: Any, sent_at: str) -> Any:
    entry = real(occurrence, sent_at)
    return type(entry)(entry.occurrence, replace(entry.start, at=sent_at))


def _ignore_types(real: Any, occurrence: Any, trigger: Any) -> Any:
    if trigger.by is None:
        return real(occurrence, trigger)
    text = bytes(occurrence.payload).replace(b'"', b"")
    return type(real(occurrence, trigger))(occurrence.trigger, text.hex()[:32])


def _check_without_the_window(real: Any, self: LaneChecks, key: Any, *, closes: Any = None, delay: int = 0) -> None:
    real(self, key, delay=0)


def _notice_of_success(real: Any, record: Any, triggers: Any) -> Any:
    return real(record, triggers) if record.status == "succeeded" else None


def _last_first(real: Any, self: LaneStore, key: Any, start: Any) -> Any:
    return real(self, key, start)[::-1]


def _end_a_moment_late(real: Any, window: Any, trigger: Any, now: Any, *args: Any) -> Any:
    return real(window, trigger, now - timedelta(microseconds=1), *args)


def _skip_when_something_waits(real: Any, lane: Lane, overlap: Any, start: Any) -> Change:
    return real(lane, "skip" if overlap == "queue" and lane.queued else overlap, start)  # type: ignore[no-any-return]


MISTAKES = (
    found_by(
        "starts a waiting task beside a running one",
        wrap(lane_changes, "settle", _settle_beside_a_running_task),
        "simulation/test_trigger_lanes.py::test_16_random_schedules_keep_the_promises_of_overlap[queue-statuses1]",
    ),
    found_by(
        "overwrites a change of a lane by another process",
        _without_condition("revision", "trigger#lane"),
        "simulation/test_trigger_lanes.py::test_16_random_schedules_keep_the_promises_of_overlap[queue-statuses1]",
    ),
    found_by(
        "decides about an occurrence twice",
        _without_condition("expires_at", "trigger#decided"),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue_at_once.py::test_16_of_two_copies_at_once_one_decides",
    ),
    found_by(
        "deletes the payload of a start that its lane still has",
        wrap(LaneStarts, "perform", _forget_at_once),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_each_occurrence_starts_as_the_overlap_says_wherever_a_process_dies",
    ),
    found_by(
        "starts the next task before it cancels the previous one",
        wrap(LaneStarts, "perform", _start_before_the_cancellation),
        "simulation/test_trigger_lanes.py::test_16_random_schedules_keep_the_promises_of_overlap[cancel-previous-statuses2]",
    ),
    found_by(
        "does not sweep waiting lanes",
        substitute(LaneSweep, "sweep", lambda *_: None),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_the_order_of_events_decides",
    ),
    found_by(
        "keeps the first payload of a debounced window",
        wrap(lane_changes, "arrive", _keep_the_first),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_debounce_starts_one_task_for_a_burst_wherever_a_process_dies",
    ),
    found_by(
        "extends a debounced window for ever",
        wrap(lane_changes, "arrive", _extend_for_ever),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue_limits.py::test_16_a_window_without_silence_closes_after_an_hour",
    ),
    found_by(
        "exceeds the size of a batch by one",
        wrap(lane_changes, "ends", _one_more_in_a_batch),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_a_batch_has_each_occurrence_once_wherever_a_process_dies",
    ),
    found_by(
        "drops a start when the queue of its lane is full",
        wrap(lane_changes, "enqueue", _drop_what_finds_no_place),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue_limits.py::test_16_an_occurrence_beyond_a_full_queue_is_a_dead_letter_that_can_be_redriven",
    ),
    found_by(
        "orders slots by the time of their message",
        wrap(lane_queue, "entry_of", _order_by_arrival),
        "unit/asya/capabilities/triggers/lambdas/test_sweeps_slot_sweep.py::test_16_late_slots_start_oldest_first",
    ),
    found_by(
        'puts 1 and "1" into one lane',
        everywhere((lanes, lane_queue), "lane_of", _ignore_types),
        "unit/asya/capabilities/triggers/test_lanes.py::test_16_a_number_and_its_text_are_two_lanes",
    ),
    found_by(
        "closes windows by the sweep alone",
        wrap(LaneChecks, "send", _check_without_the_window),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_debounce_starts_one_task_for_a_burst_wherever_a_process_dies",
    ),
    found_by(
        "tells lanes only about tasks that succeeded",
        everywhere((messages, queue_senders), "end_notice", _notice_of_success),
        "unit/asya/capabilities/triggers/test_messages_ends.py::test_16_triggers_that_wait_and_backfills_learn_of_ends",
    ),
    found_by(
        "reverses the order within a batch",
        wrap(LaneStore, "load", _last_first),
        "unit/asya/capabilities/triggers/lambdas/test_lane_queue.py::test_16_a_batch_has_each_occurrence_once_wherever_a_process_dies",
    ),
    found_by(
        "ends a window a moment late",
        wrap(lane_changes, "ends", _end_a_moment_late),
        "unit/asya/capabilities/triggers/test_lane_changes.py::test_16_a_window_ends_when_it_is_due",
    ),
    found_by(
        "skips a start if another one waits",
        wrap(lane_changes, "admit", _skip_when_something_waits),
        "simulation/test_trigger_lanes.py::test_16_random_schedules_keep_the_promises_of_overlap[queue-statuses1]",
    ),
)
