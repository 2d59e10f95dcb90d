"""Planted mistakes about what became of failures: dismissals, replays and their links (`protocol §13.resolution`, `§12.link`)."""

from dataclasses import replace as changed
from typing import Any

from msgspec.structs import replace

from asya.capabilities.dead_letters import redrive
from asya.capabilities.dead_letters.aws import replays
from asya.capabilities.dead_letters.aws.replays import ReplayCall, ReplayStarts
from asya.gateway.routes import dismissals
from asya.protocol import task_merge
from asya.protocol.task import ReplayLink, TaskRecord
from asya.tasks import cancellation, resolution
from asya.tasks.aws import lists, tasks
from asya.tasks.resolution import Settled
from tests.simulation.mistake import everywhere, found_by, substitute, wrap


def _keep_the_dismissal(real: Any, record: TaskRecord | None, *args: Any, **more: Any) -> Any:
    merged = real(record, *args, **more)
    is_dismissed = record is not None and record.dismissed is not None
    return replace(merged, dismissed=record.dismissed) if record is not None and is_dismissed else merged


def _with_the_dismissal(real: Any, record: TaskRecord, generation: int, *, at: str, by: str | None = None) -> Any:
    return replace(real(record, generation, at=at, by=by), dismissed=record.dismissed)


def _by_any_success(real: Any, record: TaskRecord, *args: Any) -> Any:
    return real(replace(record, updated_at=""), *args)


def _as_if_sent(real: Any, record: TaskRecord, *args: Any) -> Any:
    link = record.replayed
    return real(replace(record, replayed=replace(link, lease_until=None)) if link is not None else record, *args)


def _without_the_set(real: Any, record: TaskRecord) -> Any:
    return [each for each in real(record) if each != record.parent_id]


def _for_everybody(real: Any, found: Settled | None, _owner: str | None) -> bool:
    return bool(real(found, None))


def _unlink_any_replay(_real: Any, old: TaskRecord, _link: ReplayLink, before: ReplayLink | None) -> Any:
    return replace(old, replayed=before)


def _complete_any(real: Any, old: TaskRecord, _new_id: str) -> Any:
    return real(old, old.replayed.id if old.replayed is not None else "")


def _without_the_key(real: Any, self: ReplayStarts, call: ReplayCall, *args: Any) -> Any:
    return real(self, changed(call, key=None) if call.force else call, *args)


def _task_of_anybody(_real: Any, store: Any, task_id: str, _caller: Any, now: Any) -> Any:
    return store.read(task_id, now)


_DISMISSALS = "unit/asya/gateway/routes/test_dismissals.py"
_LINKS = "unit/asya/gateway/routes/test_replays_links.py"
_RESOLUTION = "unit/asya/tasks/test_resolution.py"
_SETS = "unit/asya/gateway/routes/test_replays_set_replays.py"

MISTAKES = (
    found_by(
        "keeps a dismissal after another end or a pause",
        everywhere((task_merge, tasks, cancellation), "merge", _keep_the_dismissal),
        f"{_DISMISSALS}::test_a_later_end_of_a_provisional_failure_is_not_dismissed",
        f"{_DISMISSALS}::test_a_failure_after_a_pause_is_not_dismissed",
    ),
    found_by(
        "keeps the dismissal of a failure after its redrive",
        everywhere((task_merge, redrive), "reopened", _with_the_dismissal),
        "unit/asya/gateway/routes/test_redrives.py::test_a_dead_letter_of_a_settled_task_stays_in_its_queue[dismissed]",
    ),
    found_by(
        "lets any caller dismiss a failure",
        wrap(dismissals, "visible_task", _task_of_anybody),
        f"{_DISMISSALS}::test_only_failures_of_ones_own_are_dismissed",
    ),
    found_by(
        "lets an earlier success overtake a failure",
        everywhere((resolution, tasks, lists), "settled", _by_any_success),
        f"{_RESOLUTION}::test_an_earlier_success_of_the_slot_overtakes_nothing",
    ),
    found_by(
        "settles a failure by a replay that was not sent",
        everywhere((resolution, tasks, lists), "settled", _as_if_sent),
        f"{_RESOLUTION}::test_the_state_of_the_replay_decides",
        f"{_LINKS}::test_within_the_lease_another_call_waits",
    ),
    found_by(
        "settles a failure by an overdue replay",
        wrap(resolution, "fail_if_overdue", lambda _, record, __: record),
        f"{_RESOLUTION}::test_an_overdue_replay_has_failed",
    ),
    found_by(
        "leaves a lost slice open after its set has merged",
        wrap(resolution, "related_ids", _without_the_set),
        f"{_SETS}::test_a_set_that_merged_without_a_slice_overtakes_its_failure",
    ),
    found_by(
        "hides a failure whose replay its reader may not see",
        everywhere((resolution, lists), "is_open", _for_everybody),
        f"{_LINKS}::test_an_open_failure_counts_once",
    ),
    found_by(
        "removes the link of the call that has taken over a replay",
        wrap(replays, "unlinked", _unlink_any_replay),
        f"{_LINKS}::test_a_call_that_is_refused_late_leaves_the_link_of_another_one",
    ),
    found_by(
        "marks the replay of another call as sent",
        wrap(replays, "completed", _complete_any),
        f"{_LINKS}::test_a_slow_call_completes_no_link_of_another_one",
    ),
    found_by(
        "never completes the link of a replay",
        substitute(replays, "completed", lambda old, _: old),
        f"{_LINKS}::test_the_old_task_names_its_replay_and_the_replay_names_it",
    ),
    found_by(
        "ignores the key of a forced replay",
        wrap(ReplayStarts, "start", _without_the_key),
        f"{_LINKS}::test_a_repeated_key_starts_one_replay[True]",
    ),
)
