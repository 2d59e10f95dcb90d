"""Planted mistakes about schedules, backfills and the sources of triggers (`protocol §16`)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.triggers import occurrences, slots, webhooks
from asya.capabilities.triggers.aws.queue_senders import SlotSender
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.lambdas import backfill_runner, sweeps, triggers
from asya.capabilities.triggers.operators import backfill, requests
from asya.capabilities.triggers.operators.backfill import Backfill, Step
from asya.capabilities.triggers.sources import new_objects
from asya.capabilities.triggers.sources.new_objects import NewObject
from asya.capabilities.triggers.webhooks import SignedRequest
from asya.gateway.triggers import routes
from asya.testing.dynamo.tables import MemoryDynamo
from tests.simulation.mistake import Patch, everywhere, found_by, substitute, wrap

_INSTANT = timedelta(microseconds=1)


def _in_utc(real: Any, name: str) -> Any:
    return UTC


_waiting: list[Any] = []


def _note_before_sending() -> tuple[Patch, ...]:
    """The state is written first, and the slots are sent after it."""
    send = SlotSender.send

    def keep(real: Any, self: SlotSender, *args: Any, **more: Any) -> None:
        _waiting[:] = [(self, args, more)]

    def write_and_send(real: Any, self: ScheduleStates, *args: Any) -> bool:
        written: bool = real(self, *args)
        for sender, sent, more in _waiting:
            send(sender, *sent, **more)
        _waiting.clear()
        return written

    return (wrap(SlotSender, "send", keep), wrap(ScheduleStates, "write", write_and_send))


def _put_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["Item"]["pk"]["S"] in ("TRIGGERS", "BACKFILLS") and "attribute_not_exists" not in request.get(
        "ConditionExpression", ""
    ):
        for name in ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"):
            request.pop(name, None)
    return real(self, **request)


def _resume_with_the_pause(real: Any, self: ScheduleStates, trigger: str, now: datetime) -> None:
    before = self.read_all().get(trigger)
    real(self, trigger, before.decided if before is not None else now)


def _decide_while_paused(real: Any, trigger: Any, schedule: Any, state: Any, now: datetime) -> Any:
    return real(trigger, schedule, replace(state, paused=False) if state is not None else None, now)


def _decide_up_to_now(real: Any, trigger: Any, schedule: Any, state: Any, now: datetime) -> Any:
    decision = real(trigger, schedule, state, now)
    if not decision.due:
        return decision
    return type(decision)(decision.due, decision.missed, replace(decision.state, decided=now), decision.missed_between)


def _miss_the_oldest(real: Any, trigger: Any, schedule: Any, state: Any, now: datetime) -> Any:
    return real(trigger, replace(schedule, catch_up=max(0.0, schedule.catch_up - 1e-6)), state, now)


def _send_one_by_one(real: Any, self: SlotSender, trigger: str, due: Sequence[datetime]) -> None:
    for slot in reversed(due):
        real(self, trigger, [slot])


def _ignore_errors(real: Any, self: SlotSender, *args: Any) -> None:
    try:
        real(self, *args)
    except (ClientError, BotoCoreError):
        return


def _stop_one_later(real: Any, state: Backfill, *args: Any, **more: Any) -> Step:
    later = state if state.stop_at is None else replace(state, stop_at=state.stop_at + 1)
    step: Step = real(later, *args, **more)
    return Step(replace(step.backfill, stop_at=state.stop_at), step.to_start, step.reads_on)


def _until_is_exclusive(real: Any, schedule: Any, after: datetime, until: datetime) -> Any:
    return real(schedule, after, until - _INSTANT)


def _first_is_exclusive(real: Any, schedule: Any, after: datetime, until: datetime) -> Any:
    return real(schedule, after + 2 * _INSTANT, until)


def _resume_without_more_failures(real: Any, state: Backfill, now: datetime) -> Backfill:
    return replace(real(state, now), stop_at=state.stop_at)


def _cancel_what_is_done(real: Any, state: Backfill, now: datetime) -> Backfill:
    return replace(real(replace(state, state="running"), now), state="canceled")


def _forget_failed_starts(real: Any, state: Backfill, started: Any, failed: Any) -> Backfill:
    return real(state, started, {})  # type: ignore[no-any-return]


def _day_in_utc(real: Any, text: str, zone: str) -> Any:
    return real(text, "UTC")


def _last_receive_first() -> Patch:
    return substitute(triggers, "LAST_RECEIVE", 0)


def _by_etag(self: NewObject) -> str:
    return f"object {self.bucket}/{self.key} {self.etag}"


def _keep_escapes(real: Any, key: str, **_: Any) -> str:
    return key


def _any_time(self: SignedRequest, now: datetime) -> bool:
    return True


def _by_content(_webhook: object, signed: SignedRequest, *_: object) -> str:
    return f"webhook {hash(signed.content):x}"


_UNIT = "unit/asya/capabilities/triggers"
_BOTH = f"{_UNIT} unit/asya/gateway/triggers"

MISTAKES = (
    found_by(
        "computes slots in UTC",
        wrap(slots, "ZoneInfo", _in_utc),
        "unit/asya/capabilities/triggers/test_slots.py::test_16_slots_in_local_time",
    ),
    found_by(
        "dates a slot in UTC",
        wrap(occurrences, "ZoneInfo", _in_utc),
        "unit/asya/capabilities/triggers/lambdas/test_triggers.py::test_16_a_slot_starts_the_task_of_the_trigger",
    ),
    found_by(
        "notes slots before it sends them",
        _note_before_sending(),
        "unit/asya/capabilities/triggers/lambdas/test_sweeps_slot_sweep_order.py::test_16_slots_are_sent_before_they_are_noted",
    ),
    found_by(
        "overwrites states that another process has changed",
        wrap(MemoryDynamo, "put_item", _put_unconditionally),
        "unit/asya/capabilities/triggers/aws/test_schedule_states.py::test_16_of_two_sweeps_that_have_seen_the_same_schedule_one_writes",
        "unit/asya/capabilities/triggers/aws/test_schedule_states.py::test_16_of_two_steps_that_have_seen_the_same_backfill_one_writes",
    ),
    found_by(
        "starts the slots of a paused schedule after its resume",
        wrap(ScheduleStates, "resume", _resume_with_the_pause),
        "unit/asya/capabilities/triggers/aws/test_schedule_states.py::test_16_a_schedule_begins_anew_when_it_is_resumed",
    ),
    found_by(
        "starts slots of a paused trigger",
        everywhere((slots, sweeps), "decide", _decide_while_paused),
        "unit/asya/capabilities/triggers/test_slots_due_slots.py::test_16_slots_while_paused_are_neither_due_nor_missed",
    ),
    found_by(
        "loses the slots that a sweep leaves to the next one",
        everywhere((slots, sweeps), "decide", _decide_up_to_now),
        "unit/asya/capabilities/triggers/test_slots_due_slots.py::test_16_one_sweep_sends_a_bounded_number_of_slots",
    ),
    found_by(
        "misses a slot at the end of catch_up",
        everywhere((slots, sweeps), "decide", _miss_the_oldest),
        "unit/asya/capabilities/triggers/test_slots_due_slots.py::test_16_late_slots_are_due_within_catch_up_oldest_first",
    ),
    found_by(
        "continues with the slots of the former schedule",
        substitute(slots, "schedule_digest", lambda _: "same"),
        "unit/asya/capabilities/triggers/test_slots_due_slots.py::test_16_a_changed_schedule_begins_now",
    ),
    found_by(
        "sends slots that are due together newest first",
        wrap(SlotSender, "send", _send_one_by_one),
        "unit/asya/capabilities/triggers/lambdas/test_sweeps_slot_sweep.py::test_16_late_slots_start_oldest_first",
    ),
    found_by(
        "notes slots that SQS has not taken",
        wrap(SlotSender, "send", _ignore_errors),
        "unit/asya/capabilities/triggers/lambdas/test_sweeps_slot_sweep_order.py::test_16_slots_that_sqs_refuses_are_sent_by_the_next_sweep",
    ),
    found_by(
        "runs one task too many of a backfill at a time",
        substitute(Backfill, "free", property(lambda self: self.at_once + 1 - (len(self.noted) - self.paused))),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_slots_are_noted_oldest_first_as_many_as_may_run",
    ),
    found_by(
        "stops a backfill one failure late",
        everywhere((backfill, backfill_runner), "advance", _stop_one_later),
        "unit/asya/capabilities/triggers/lambdas/test_backfill_runner.py::test_16_it_stops_at_failures",
    ),
    found_by(
        "leaves the last slot of a backfill out",
        wrap(backfill, "slots_between", _until_is_exclusive),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_the_first_and_the_last_moment_may_be_slots",
    ),
    found_by(
        "leaves the first slot of a backfill out",
        wrap(backfill, "slots_between", _first_is_exclusive),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_the_first_and_the_last_moment_may_be_slots",
    ),
    found_by(
        "does not count the first slot of a backfill",
        wrap(requests, "slots_between", _first_is_exclusive),
        "unit/asya/capabilities/triggers/operators/test_requests_backfill_request.py::test_16_a_range_of_one_moment_has_its_slot",
    ),
    found_by(
        "keeps the count of failures when a backfill is resumed",
        everywhere((backfill, routes), "resumed", _resume_without_more_failures),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_failures_stop_it_and_resume_allows_as_many_again",
    ),
    found_by(
        "cancels a backfill that is done",
        everywhere((backfill, routes), "canceled", _cancel_what_is_done),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_one_that_is_done_stays_so",
    ),
    found_by(
        "retries a failed slot of a backfill for ever",
        wrap(backfill_runner, "with_starts", _forget_failed_starts),
        "unit/asya/capabilities/triggers/lambdas/test_backfill_runner.py::test_16_a_slot_that_cannot_start_now_starts_later_and_one_that_never_can_is_a_failure",
    ),
    found_by(
        "ends a day of a backfill in UTC",
        wrap(requests, "read_end", _day_in_utc),
        "unit/asya/capabilities/triggers/operators/test_requests_backfill_request.py::test_16_a_day_begins_and_ends_at_midnight_of_the_zone",
    ),
    found_by(
        "begins a day of a backfill in UTC",
        wrap(requests, "read_start", _day_in_utc),
        "unit/asya/capabilities/triggers/operators/test_requests_backfill_request.py::test_16_a_backfill_has_the_slots_of_its_days_in_the_zone",
    ),
    found_by(
        "reuses the keys of the schedule for slots that a backfill repeats",
        substitute(Backfill, "key", lambda self, slot: occurrences.slot_key(slot)),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_a_slot_with_a_task_counts_as_done_before",
    ),
    found_by(
        "closes a backfill whose last tasks run",
        substitute(Backfill, "is_open", property(lambda self: self.state == "running")),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_failures_stop_it_and_resume_allows_as_many_again",
    ),
    found_by(
        "starts occurrences of a paused trigger",
        substitute(triggers, "heeds_pause", lambda _: False),
        "unit/asya/gateway/triggers/test_routes_trigger_routes.py::test_16_events_of_a_pause_are_kept_as_dead_letters",
    ),
    found_by(
        "gives up a message during a deployment",
        _last_receive_first(),
        "unit/asya/capabilities/triggers/lambdas/test_triggers_unknown.py::test_16_a_message_that_fits_no_trigger_waits_for_a_deployment",
    ),
    found_by(
        "gives up a start that is in progress",
        substitute(triggers, "FINAL", (400, 404, 409, 413)),
        "simulation/test_trigger_events.py::test_16_each_event_has_one_record[1]",
    ),
    found_by(
        "takes a second write of an object for a repetition",
        substitute(NewObject, "occurrence_key", property(_by_etag)),
        "unit/asya/capabilities/triggers/sources/test_service_messages.py::test_16_each_version_and_each_write_of_a_key_is_an_occurrence_of_its_own",
    ),
    found_by(
        "keeps the escapes in the key of an object",
        wrap(new_objects, "unquote_plus", _keep_escapes),
        "unit/asya/capabilities/triggers/sources/test_service_messages.py::test_16_a_notification_gives_the_key_as_it_is",
    ),
    found_by(
        "takes webhooks that were signed long ago",
        substitute(SignedRequest, "is_recent", _any_time),
        "unit/asya/capabilities/triggers/test_webhooks_signatures.py::test_16_a_signed_time_is_five_minutes_from_now_at_most",
    ),
    found_by(
        "gives a repeated webhook another key",
        substitute(webhooks, "occurrence_key", _by_content),
        "unit/asya/capabilities/triggers/test_webhooks_identity.py::test_16_a_repetition_with_a_new_time_has_the_same_key",
    ),
)
