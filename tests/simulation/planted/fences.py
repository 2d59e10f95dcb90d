"""Planted mistakes about fences: a process that undoes, or finishes, what another one has taken over."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from msgspec.structs import replace as replaced

from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.triggers import lane_changes
from asya.capabilities.triggers.aws.queue_senders import SlotSender
from asya.capabilities.triggers.lambdas import starts, triggers
from asya.capabilities.triggers.lanes import Lane
from asya.capabilities.triggers.operators import backfill
from asya.heavy.aws.start_limits import RunPermit, RunPermits
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts import idempotency
from asya.tasks.starts.aws import idempotency_keys
from asya.tasks.starts.idempotency import KeyClaim, StoredKey
from asya.testing.dynamo.tables import MemoryDynamo
from asya_infra.mesh_file.checks.loops import Causes
from tests.simulation.mistake import found_by, substitute, wrap


def _without_condition(part: dict[str, Any], *values: str) -> dict[str, Any]:
    kept = {name: value for name, value in part.items() if name != "ConditionExpression"}
    named = {name: value for name, value in part["ExpressionAttributeValues"].items() if name not in values}
    return kept | {"ExpressionAttributeValues": named}


def _undo_whoever_has_it(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    parts = [
        {"Update": _without_condition(part["Update"], ":task", ":mine")} if ":released" in str(part) else part
        for part in request["TransactItems"]
    ]
    return real(self, **request | {"TransactItems": parts})


def _mark_any_task(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["UpdateExpression"] == "SET sent = :yes":
        request = _without_condition(request, ":task")
    return real(self, **request)


def _forget_that_it_may_be_sent(real: Any, stored: StoredKey, digest: str, now: datetime) -> Any:
    outcome = real(stored, digest, now)
    return replace(outcome, may_be_sent=False) if isinstance(outcome, KeyClaim) else outcome


def _give_back_any(real: Any, self: RunPermits, permit: RunPermit) -> None:
    for take in range(9):
        real(self, RunPermit(permit.run_id, take))


def _release_any(real: Any, self: FanInSets, set_id: str, *, until: float) -> None:
    record = self.get(set_id)
    real(self, set_id, until=record.lease_until if record is not None else until)


def _fail_started(real: Any, state: Any, started: Any, failed: Any) -> Any:
    noted = tuple(replaced(each, is_started=each.is_started and each.slot not in failed) for each in state.noted)
    return real(replaced(state, noted=noted), started, failed)


def _running_alone(_real: Any, lane: Lane, _trigger: Any) -> Any:
    return frozenset(each for each in (lane.running,) if each is not None and not lane.starts(each))


_STARTS = "unit/asya/tasks/starts/aws/test_task_starter.py"
_AT_ONCE = "unit/asya/tasks/starts/aws/test_task_starter_at_once.py"
_DEPLOYMENTS = "unit/asya/capabilities/triggers/lambdas/test_lane_queue_deployments.py"
_CHAINS = "unit/asya/capabilities/triggers/lambdas/test_triggers_chains.py"
_LOOPS = "unit/asya_infra/mesh_file/checks/test_loops.py"

MISTAKES = (
    found_by(
        "undoes a start that another process has taken over",
        wrap(MemoryDynamo, "transact_write_items", _undo_whoever_has_it),
        f"{_AT_ONCE}::test_a_task_that_may_run_keeps_its_record_whoever_is_slow[refused]",
    ),
    found_by(
        "withdraws a start although its message may have been sent",
        wrap(idempotency_keys, "decide_repetition", _forget_that_it_may_be_sent),
        f"{_AT_ONCE}::test_a_task_that_may_run_keeps_its_record_whoever_is_slow[died after]",
    ),
    found_by(
        "marks the key of another task as sent",
        wrap(MemoryDynamo, "update_item", _mark_any_task),
        f"{_AT_ONCE}::test_a_key_that_stands_for_another_task_by_now_is_not_marked",
    ),
    found_by(
        "removes a record that an earlier start has written",
        wrap(Tasks, "create", lambda real, *args, **more: (real(*args, **more), True)[1]),
        f"{_STARTS}::test_a_record_that_was_there_before_stays",
    ),
    found_by(
        "takes a lease that is shorter than the timeout of the function",
        wrap(idempotency, "lease_of", lambda *_: 35.0),
        f"{_STARTS}::test_a_claim_outlives_each_function_that_starts_tasks",
    ),
    found_by(
        "gives back the permit of a run that another process has taken",
        wrap(RunPermits, "give_back", _give_back_any),
        "unit/asya/heavy/aws/test_start_limits_run_permits.py::test_a_slow_dispatcher_gives_nothing_back_that_was_taken_again",
    ),
    found_by(
        "releases the lease that another process has on a set",
        wrap(FanInSets, "release_lease", _release_any),
        "unit/asya/capabilities/fan_in/aws/test_sets.py::test_a_lease_is_taken_by_one_until_it_is_over_or_given_back",
    ),
    found_by(
        "takes a slot that another process has started for a failure",
        wrap(backfill, "with_starts", _fail_started),
        "unit/asya/capabilities/triggers/operators/test_backfill.py::test_16_a_slot_that_another_process_has_started_is_no_failure",
    ),
    found_by(
        "starts everything that waits for a cancellation that no trigger performs",
        wrap(starts, "startable", lambda _, lane, __: lane.starting),
        f"{_DEPLOYMENTS}::test_16_a_noted_cancellation_of_a_trigger_that_cancels_no_more[3-queue]",
    ),
    found_by(
        "does not wait for the task that a changed trigger was to cancel",
        wrap(lane_changes, "awaited", _running_alone),
        f"{_DEPLOYMENTS}::test_16_a_noted_cancellation_of_a_trigger_that_cancels_no_more[1-queue]",
    ),
    found_by(
        "sends late slots newest first",
        wrap(SlotSender, "send", lambda real, self, trigger, slots: real(self, trigger, list(reversed(slots)))),
        "unit/asya/capabilities/triggers/lambdas/test_sweeps_slot_sweep.py::test_16_late_slots_start_oldest_first[allow]",
    ),
    found_by(
        "forgets which triggers led to a task",
        substitute(triggers, "led_by", lambda _: ()),
        f"{_CHAINS}::test_16_two_triggers_that_start_each_other_end_with_a_dead_letter_that_names_both",
    ),
    found_by(
        "finds only loops of a single trigger",
        wrap(Causes, "of", lambda real, self, cause, started: real(self, cause, started) if cause is started else []),
        f"{_LOOPS}::test_16_two_triggers_may_not_start_each_other",
    ),
)
