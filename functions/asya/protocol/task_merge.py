"""How reports change the record of a task (`protocol §13`).

Reports may arrive twice, late, out of order and from several sidecars at once. `merge` gives the same record for any order
of the same reports, with one exception: the first terminal report sets the status. A provisional end gives way to an end that
was claimed, and to a pause. The cancellation of a call gives way to an end that was claimed.
"""

from datetime import timedelta

from msgspec import UNSET
from msgspec.structs import replace

from asya.protocol import names, states
from asya.protocol.envelope import UNKNOWN_HOP
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TaskEvent, is_end
from asya.protocol.pause import DEFAULT_PROMPT, PauseFailure, PauseRelease, TaskPause
from asya.protocol.states import TaskStatus
from asya.protocol.status import known_reason
from asya.protocol.task import EarlierGeneration, Resolution, TaskRecord, TaskRetry
from asya.protocol.times import format_time, parse_time
from asya.protocol.wait import TaskWait

_RANKS: dict[str, int] = {
    states.PENDING: 0,
    states.RUNNING: 1,
    states.PAUSED: 2,
    states.SUCCEEDED: 3,
    states.FAILED: 3,
    states.CANCELED: 3,
}

# A report may name a creation this long before it. Senders set the status of their envelopes, and an index lists every hour in
# which tasks were created.
CREATION_LIMIT = timedelta(days=31)

# Earlier generations keep only the details that identify the error of the redrive.
EARLIER_LIMIT = 10
EARLIER_MESSAGE_LIMIT = 1024


def merge(record: TaskRecord | None, event: TaskEvent, *, root: TaskRecord | None = None) -> TaskRecord:
    """The record after a report.

    Args:
        record: the record so far; None if this is the first report of the task.
        root: the record of the root, if the report is of a child and the root is known. The child has its owner, unless the
            record or the report names one, and its tool.

    Returns:
        a record equal to `record` if the report changes nothing: a lower status, an earlier generation, a repetition,
        another owner.
    """
    if record is None:
        return _with_retry(_new_record(event, root), event)
    if event.data.owner is not None and record.owner not in (None, event.data.owner):
        return record  # `protocol §13.owner.reports`
    record = replace(_with_retry(record, event), created_at=min(record.created_at, creation_time(event)))
    if event.generation < record.generation:
        return _with_earlier(record, _generation_of(event), event)
    identified = _identified(record, event, root)
    if event.generation > record.generation:
        # A redrive has reopened the record before its first report. Any actor may send progress, and must not reopen tasks.
        return _reopened(identified, event) if is_end(event) else identified
    return _reported(identified, event)


def is_shown_by_hops(before: TaskRecord, after: TaskRecord) -> bool:
    """Whether a change of a record says no more than its hops: a pending task is running (`protocol §13.running`).

    Replays, lanes and push notifications go by the record alone, so records of the tasks that they follow are no such ones.
    """
    is_followed = before.is_watched or before.started_by is None or before.started_by.kind != "caller"
    if is_followed or not before.is_pending or not after.is_running:
        return False
    return replace(after, status=before.status, updated_at=before.updated_at) == before


def _reported(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record after a report of its own generation."""
    if event.status == states.WAITING:
        return _waiting(record, event)
    status = _status_of(event)
    if record.is_terminal and not _is_replaced(record, event):
        return _after_end(record, event, status)
    is_higher = status == states.PAUSED or record.is_terminal or _RANKS[status] > _RANKS[record.status]
    return _advanced(record, event, status) if is_higher and not _is_of_late_copy(record, event) else record


def _with_retry(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record with a retry, if it is the last one. It counts in any order: status and hops decide whether it is shown."""
    note = event.data.retry
    if note is None or event.status not in states.PROGRESS:
        return record
    retry = TaskRetry(
        actor=event.data.actor,
        generation=event.generation,
        position=event.position,
        attempt=event.attempt,
        max_attempts=note.max_attempts,
        at=event.at,
        next_at=note.next_at,
        error=ErrorInfo(type=note.error.type, message=note.error.message[:EARLIER_MESSAGE_LIMIT]),
    )
    return record if record.retry is not None and record.retry.place >= retry.place else replace(record, retry=retry)


def _is_replaced(record: TaskRecord, event: TaskEvent) -> bool:
    """Whether a report replaces the end of a record: a provisional end, or a cancellation whose envelope has ended otherwise."""
    if record.provisional:
        return _voids_provisional(event)
    return record.is_canceled and _is_claimed(event)


def _is_claimed(event: TaskEvent) -> bool:
    """Whether a report is of an end that was claimed, as anything but a cancellation (`protocol §13.cancel.claimed`).

    An end with a route comes from x-sink or x-sump, or from a slice's fan-in actor. Beside a cancellation that is claimed there
    is no such report: so the one in the record came by a call, and was too late for the claim.
    """
    return (
        event.status in (states.SUCCEEDED, states.FAILED)
        and event.data.route is not None
        and not event.data.provisional
    )


def _voids_provisional(event: TaskEvent) -> bool:
    """Whether a report replaces a provisional end: another end, or a pause, which shows that the envelope is alive.

    Of the cancellations only that of an envelope at x-sink does, which has claimed it. It alone has a route.
    """
    if event.data.provisional:
        return False
    return event.status in (states.SUCCEEDED, states.FAILED, states.PAUSED) or (
        event.status == states.CANCELED and event.data.route is not None
    )


def _status_of(event: TaskEvent) -> TaskStatus:
    """The task status that a report implies; every report that is not of an end or a pause implies `running`."""
    match event.status:
        case states.SUCCEEDED | states.FAILED | states.CANCELED | states.PAUSED:
            return event.status
        case _:
            return states.RUNNING


def _is_of_late_copy(record: TaskRecord, event: TaskEvent) -> bool:
    """Whether an end was reported at or below the task's last pause, so that it is one of a late copy (`protocol §11`).

    A report without a route is about the task, not about a hop; and the hop of an unreadable message is unknown.
    """
    if event.status not in (states.SUCCEEDED, states.FAILED):
        return False
    is_at_a_hop = event.data.route not in (None, UNKNOWN_HOP)
    return is_at_a_hop and event.position <= record.last_pause


def _new_record(event: TaskEvent, root: TaskRecord | None) -> TaskRecord:
    empty = TaskRecord(
        id=event.id, status=states.PENDING, created_at=creation_time(event), updated_at=event.at, owner=event.data.owner
    )
    identified = _identified(empty, event, root)
    return _advanced(replace(identified, generation=event.generation), event, _status_of(event))


def creation_time(event: TaskEvent) -> str:
    """When the task began according to a report: as its envelope says, if that is credible, else the time of the report."""
    created_at = event.data.created_at
    if created_at is None or created_at > event.at:
        return event.at
    earliest = format_time(parse_time(event.at) - CREATION_LIMIT)
    return created_at if created_at >= earliest else event.at


def _identified(record: TaskRecord, event: TaskEvent, root: TaskRecord | None) -> TaskRecord:
    """The record with the fields that do not change; the first report that has a value sets it.

    Any actor may send progress. So progress adds nothing to a record with a route, which its first report has brought in
    full. The owner of a record that has none comes from its root or a registration: the header of an envelope can be forged.
    The tool of a child comes from its root alone, whose record the gateway has written.
    """
    sender = event.data.owner if event.status == states.REGISTERED else None
    if record.route is not None and not is_end(event):
        return replace(record, owner=record.owner or sender)
    return replace(
        record,
        parent_id=record.parent_id or event.parent_id,
        root_id=record.root_id or event.root_id,
        owner=record.owner or sender or (root.owner if root is not None else None),
        tool=record.tool or (root.tool if root is not None else None),
        deadline_at=record.deadline_at or event.data.deadline_at,
        set_id=record.set_id or event.data.set_id,
    )


def _advanced(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> TaskRecord:
    if status == states.PAUSED:
        return _paused(record, event)
    if event.status == states.WAITING:
        return _waiting(record, event)
    return _moved(record, event, status)


def _moved(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> TaskRecord:
    """The record in a new status, other than a pause."""
    data = event.data
    moved = replace(
        record,
        status=status,
        updated_at=event.at if status in states.TERMINAL else max(record.updated_at, event.at),
    )
    if status not in states.TERMINAL and record.route is not None:
        return moved
    moved = replace(
        moved,
        actor=data.actor or record.actor,
        route=data.route or record.route,
        attempt=data.attempt or event.attempt,
    )
    if status not in states.TERMINAL:
        return moved
    return replace(
        moved,
        result=data.result,
        result_uri=data.result_uri,
        error=data.error,
        reason=data.reason,
        provisional=data.provisional,
        pause=None,
        handover=_release_at_end(record, event, status),
        wait=_due_at_once(record.wait) if status == states.CANCELED else record.wait,
        canceled=record.canceled if status == states.CANCELED else None,
        # Who dismissed a provisional end has not seen this one.
        dismissed=None,
    )


def _waiting(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record after a report of a wait. A wait counts only beyond the last wait and the last pause.

    An ended task has a wait too: its end may be provisional, and no message holds the envelope any more.
    """
    data = event.data
    place = event.position, event.attempt
    if event.position <= record.last_pause or (record.wait is not None and place <= record.wait.place):
        return record
    wait = TaskWait(
        actor=data.actor,
        position=event.position,
        attempt=event.attempt,
        since=event.at,
        until=data.waiting_until or event.at,
    )
    if record.is_canceled:
        return replace(record, wait=_due_at_once(wait))
    moved = _moved(record, event, states.RUNNING) if record.is_active else record
    return replace(moved, wait=wait)


def _due_at_once(wait: TaskWait | None) -> TaskWait | None:
    """The wait of a canceled task: its envelope leaves now, and the check before its hop ends it as canceled."""
    return wait and replace(wait, until=min(wait.since, wait.until))


def _paused(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record after a report of a pause. A pause counts only beyond the last one."""
    if event.position <= record.last_pause:
        return record
    data = event.data
    return replace(
        record,
        status=states.PAUSED,
        updated_at=max(record.updated_at, event.at),
        pause_epoch=event.position,
        pause=TaskPause(
            prompt=data.prompt or DEFAULT_PROMPT,
            fields=data.fields,
            since=event.at,
            until=data.waiting_until or UNSET,
            callback=data.callback or UNSET,
            shown=data.shown or UNSET,
        ),
        actor=data.actor or record.actor,
        route=data.route or record.route,
        attempt=data.attempt or event.attempt,
        # The envelope got here, so the release of the earlier pause was sent.
        handover=None,
        # A provisional end is void, and so is its dismissal.
        result=UNSET,
        result_uri=None,
        error=None,
        reason=None,
        provisional=False,
        canceled=None,
        dismissed=None,
    )


def _after_end(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> TaskRecord:
    """The record of an ended task after a later report, which never changes the status."""
    return _paused_after_end(record, event) if status == states.PAUSED else _with_late_result(record, event)


def _paused_after_end(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record of a task that was canceled, or failed, before its pause was reported: its kept envelope ends too.

    Nothing else would end it: no message holds it any more. The sweep of pauses sends it to x-sink.
    """
    if record.has_succeeded or event.position <= record.last_pause:
        return record
    release = PauseRelease(to=names.SINK, epoch=event.position, at=max(record.updated_at, event.at))
    if record.has_failed:
        error = record.error or ErrorInfo(type="RuntimeError", message="the task failed before it paused")
        release = replace(release, failure=PauseFailure(reason=known_reason(record.reason), error=error))
    return replace(record, pause_epoch=event.position, handover=release)


def _release_at_end(record: TaskRecord, event: TaskEvent, status: TaskStatus) -> PauseRelease | None:
    """The release to send at the end of a task: a canceled paused task sends its envelope to x-sink.

    A release to x-resume stays: the next hop stops the resumed envelope of a canceled task. So does that of an ended task.
    """
    if record.is_terminal:
        return record.handover
    if status != states.CANCELED:
        return None
    if record.is_paused and record.pause_epoch is not None:
        return PauseRelease(to=names.SINK, epoch=record.pause_epoch, at=event.at)
    return record.handover


def reopened(
    record: TaskRecord, generation: int, *, at: str, by: str | None = None, letter: str | None = None
) -> TaskRecord:
    """The record of a task before a redrive: pending, in a later generation (`protocol §12`).

    The result of the current generation moves to `earlier`.

    Args:
        by: the principal that redrives it; None for a report of a later generation.
        letter: the SQS message id of the dead letter.
    """
    ended = _current_generation(record)
    if by is not None:
        ended = replace(ended, resolution=Resolution(how="redriven", at=at, by=by))
    return replace(
        _with_earlier(record, ended),
        status=states.PENDING,
        generation=generation,
        updated_at=at,
        actor=None,
        route=None,
        attempt=None,
        result=UNSET,
        result_uri=None,
        error=None,
        reason=None,
        provisional=False,
        pause_epoch=None,
        resumed_epoch=None,
        pause=None,
        handover=None,
        wait=None,
        canceled=None,
        letter=letter,
        replayed=None,
        dismissed=None,
        overtaken=(),
    )


def _reopened(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record after the first report of a redriven envelope."""
    return _advanced(reopened(record, event.generation, at=event.at), event, _status_of(event))


def _current_generation(record: TaskRecord) -> EarlierGeneration:
    if not record.is_terminal:
        return EarlierGeneration(generation=record.generation, status=record.status)
    return EarlierGeneration(
        generation=record.generation,
        status=record.status,
        ended_at=record.updated_at,
        actor=record.actor,
        reason=record.reason,
        error=_short(record.error),
        provisional=record.provisional,
    )


def _generation_of(event: TaskEvent) -> EarlierGeneration:
    """The result that a late report implies for its earlier generation."""
    status = _status_of(event)
    if status not in states.TERMINAL:
        return EarlierGeneration(generation=event.generation, status=status)
    return EarlierGeneration(
        generation=event.generation,
        status=status,
        ended_at=event.at,
        actor=event.data.actor or None,
        reason=event.data.reason,
        error=_short(event.data.error),
        provisional=event.data.provisional,
    )


def _with_earlier(record: TaskRecord, result: EarlierGeneration, event: TaskEvent | None = None) -> TaskRecord:
    """The record with the result of an earlier generation; the higher status counts, and of two ends the first.

    Args:
        event: the late report that implies the result, if one does.
    """
    results = {each.generation: each for each in record.earlier}
    before = results.get(result.generation)
    is_void = before is not None and before.provisional and result.is_terminal and not result.provisional
    if before is not None and before.is_canceled and event is not None:
        is_void |= _is_claimed(event)
    if before is not None and _RANKS[result.status] <= _RANKS[before.status] and not is_void:
        return record
    results[result.generation] = replace(result, resolution=before.resolution) if before is not None else result
    return replace(record, earlier=tuple(results[number] for number in sorted(results))[-EARLIER_LIMIT:])


def _short(error: ErrorInfo | None) -> ErrorInfo | None:
    return error and ErrorInfo(type=error.type, message=error.message[:EARLIER_MESSAGE_LIMIT])


def _with_late_result(record: TaskRecord, event: TaskEvent) -> TaskRecord:
    """The record with the object of its end, which x-sink may report after the end (`protocol §11`).

    Another run of the same end may have written the object, so the record takes all that the object holds.
    """
    data = event.data
    if record.result_uri is not None or event.status != record.status or not data.result_uri:
        return record
    if data.route is None:
        return replace(record, result_uri=data.result_uri)
    return replace(_advanced(record, event, record.status), updated_at=record.updated_at)
