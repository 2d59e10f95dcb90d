"""Finds the stored envelopes of replays, starts them, and links each to its task (`protocol §12`, `§12.link`).

The link is written into the record of the replayed task before the new task exists, and completed after its message is sent.

| the process dies | state | the next call |
|---|---|---|
| before the link | nothing | starts a replay |
| before the new record | a link to no task, so the failure is open | starts a replay; with the same key under the same id |
| before the message | a pending task, an incomplete link: open | sends the message under the same id |
| before the link is complete | a task, an incomplete link: open while it is pending | sends a second message of this id |
| later | a task at work, a complete link: settled | is refused |

An incomplete link holds a lease: within it, another call is refused. A call with the key of the first one finds its task.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from msgspec.structs import replace

from asya.capabilities.dead_letters import replay, set_replay
from asya.capabilities.dead_letters.kept_inputs import KeptInputs, ReadHops, counting_inputs, read_kept_inputs
from asya.capabilities.dead_letters.replay import Sources
from asya.capabilities.dead_letters.set_replay import FanOut
from asya.capabilities.dead_letters.settlements import in_progress_error, other_request_error, settled_error
from asya.function.aws.bounded_reads import is_missing, is_unreadable, largest_payload, read_at_most
from asya.function.targets import actual_actor
from asya.protocol import ids, names, states
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.hops import HopFold
from asya.protocol.keys import buffered_prefix, inputs_folder, safe_segment, sump_key
from asya.protocol.mesh_table import Sink
from asya.protocol.task import ReplayLink, Resolution, TaskRecord
from asya.protocol.times import format_time, parse_time
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import Composer, Prepare, TaskStarter, unchanged
from asya.tasks.starts.idempotency import IdempotencyKey, lease_of
from asya.tasks.view import TaskView

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class ReplaySources:
    """Finds and reads the stored copies of an envelope.

    Args:
        bucket: the mesh's bucket.
        results_uri: the folder of x-sink; ends with `/`.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

    def __init__(self, s3: "S3Client", bucket: str, results_uri: str, sink: Sink) -> None:
        self._s3 = s3
        self._own_uri = f"s3://{bucket}/"
        self._results_uri = results_uri
        self._failed_prefix = sink.failed_prefix

    def find(self, envelope_id: str, task: TaskView | None, read_hops: ReadHops) -> Sources:
        """Find all stored copies of an envelope.

        Args:
            task: the record of the envelope, which names its result; None without a record.
            read_hops: reads the reports about its hops, which say whose inputs count.
        """
        own, results = self._own_uri, self._results_uri
        return Sources(
            result=self._result(envelope_id, task),
            sump=self._if_there(results + sump_key(envelope_id)),
            dead_letters=self._by_position(own + replay.dead_letters_folder(envelope_id)),
            inputs=self._inputs(own + inputs_folder(envelope_id), task, read_hops),
            checkpoints=self._by_position(results + replay.checkpoints_folder(envelope_id)),
        )

    def fan_out(self, stored: Envelope) -> FanOut | None:
        """Find the kept frames of the fan-out before an envelope's fan-in actor; None if they are not kept.

        A listing needs no permission to read the frames.
        """
        route = stored.route
        # A fan-out that was repeated has its frames from the fan-in actor.
        writers = [actual_actor(stored, name) for name in (route.prev[-1], route.curr)]
        folders = [f"{self._own_uri}{buffered_prefix(writer)}{safe_segment(stored.id)}/" for writer in writers]
        found = (set_replay.latest_fan_out(stored, folder, self._uris(folder)) for folder in folders)
        return max((each for each in found if each is not None), key=lambda each: each.generation, default=None)

    def read(self, uri: str) -> bytes:
        """Read an object.

        Raises:
            ApiError: 409 if nobody can read it, or if it is larger than this function can hold: actors write the inputs of hops.
        """
        bucket, key = _split_uri(uri)
        try:
            body, limit = self._s3.get_object(Bucket=bucket, Key=key)["Body"], largest_payload()
        except ClientError as error:
            if is_unreadable(error):
                raise ApiError(409, "unreadable", f"{uri} is archived, or its key of encryption is missing") from error
            raise
        content = read_at_most(body, limit)
        if content is None:
            raise ApiError(409, "unreadable", f"{uri} has more than {limit:,} bytes, which the gateway cannot replay")
        return content

    def _result(self, envelope_id: str, task: TaskView | None) -> str | None:
        """The address of a failed envelope's result. A record may name any address, but only results may be read."""
        named = task.result_uri if task is not None and task.has_failed else None
        if named is not None and named.startswith(self._results_uri):
            return self._if_there(named)
        return self._if_there(f"{self._results_uri}{self._failed_prefix}{safe_segment(envelope_id)}.json")

    def _if_there(self, uri: str) -> str | None:
        bucket, key = _split_uri(uri)
        try:
            self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        return uri

    def _by_position(self, folder: str) -> dict[int, str]:
        return replay.by_position(folder, self._uris(folder))

    def _inputs(self, folder: str, task: TaskView | None, read_hops: ReadHops) -> KeptInputs:
        return counting_inputs(read_kept_inputs(folder, self._objects(folder)), task, read_hops)

    def _uris(self, folder: str) -> Iterator[str]:
        return (uri for uri, _ in self._objects(folder))

    def _objects(self, folder: str) -> Iterator[tuple[str, int]]:
        """Yield the addresses of the objects below a folder, with their bytes."""
        bucket, prefix = _split_uri(folder)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return ((f"s3://{bucket}/{item['Key']}", item["Size"]) for page in pages for item in page.get("Contents", []))


def _split_uri(uri: str) -> tuple[str, str]:
    # Not parsed as a URL, because a key may contain `%2F` or `#`.
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


_LEASE = timedelta(seconds=lease_of(names.GATEWAY_API))
_ANY_CALLER = ""
"""The owner of the keys that all callers share; no caller has an empty name."""
_REPETITIONS = 100
"""So often the replays of one task without a record may fail."""


@dataclass(frozen=True, slots=True)
class ReplayCall:
    """A call that replays a task.

    Attributes:
        old_id: the task to replay.
        new_id: the id of the new task, unless an earlier call has begun one.
        caller: the principal of the caller.
        request: where the replay starts, as JSON.
        force: whether to start another replay although the task is settled.
        key: the idempotency key of the caller; None without one.
        shared_key: a key for the calls of all callers that have no key of their own; None for none.
        prepare: completes the record of the new task.
    """

    old_id: str
    new_id: str
    caller: str
    request: str
    force: bool = False
    key: IdempotencyKey | None = None
    shared_key: IdempotencyKey | None = None
    prepare: Prepare = unchanged


class _Known(ApiError):  # noqa: N818 - it ends a start that is not needed
    """The link has the replay of this very call, and it is sent."""

    def __init__(self, link: ReplayLink) -> None:
        super().__init__(409, "replayed", f"the replay {link.id!r} has started")
        self.link = link


class _Begun(ApiError):  # noqa: N818 - it ends a start in favor of another one
    """An earlier call has begun a replay and died; that replay has to be finished."""

    def __init__(self, link: ReplayLink) -> None:
        super().__init__(409, "replayed", f"the replay {link.id!r} was begun, and perhaps not sent")
        self.link = link


@dataclass(frozen=True)
class ReplayStarts:
    """Starts replays, once for each failure."""

    tasks: Tasks
    starter: TaskStarter

    def check(self, record: TaskRecord, now: datetime) -> None:
        """Check that a task is not settled, so that it may be replayed or redriven without force.

        Raises:
            ApiError: 409 that names what settled it.
            TaskStoreError: the table is unavailable.
        """
        found = self.tasks.settled(record, now)
        if found is not None and not found.resolution.is_open:
            raise settled_error(record.id, found.resolution)

    def start(self, call: ReplayCall, compose: Composer, now: datetime) -> str:
        """Start the replay of a call, and return the id of the new task.

        Args:
            call: the call.
            compose: builds the first message.
            now: the time of the call.

        Raises:
            ApiError: 409 if the task is settled, or if another call replays it; else as `TaskStarter.start`.
            TaskStoreError: the table is unavailable.
        """
        links: list[tuple[ReplayLink, ReplayLink | None]] = []

        def prepare(record: TaskRecord) -> TaskRecord:
            record = call.prepare(record)
            links.append(self._link(call, record, now))
            return record

        try:
            task_id = self._start(call, compose, now, prepare)
        except _Known as known:
            return known.link.id
        except _Begun as begun:
            return self._finish(call, begun.link, compose, now)
        except ApiError as error:
            if links and error.code in ("not_sent", "too_large"):
                self._unlink(call.old_id, *links[-1], now)
            raise
        self._complete(call.old_id, task_id, now)
        return task_id

    def start_without_record(self, call: ReplayCall, compose: Composer, now: datetime) -> str:
        """Start the replay of a task whose record has expired, which leaves no place for a link.

        Without a key the id of the new task derives from the old one. So a repeated call finds the task of the first one, until
        that task has failed or was canceled.

        Raises:
            ApiError: 409 after too many failed replays; else as `TaskStarter.start`.
            TaskStoreError: the table is unavailable.
        """
        if call.key is not None or call.force:
            return self._start(call, compose, now, call.prepare)
        for number in range(_REPETITIONS):
            new_id = ids.repeat_id(call.old_id, "replay", number)
            new = self.tasks.read(new_id, now)
            if new is None or not new.has_ended_badly:
                shared = IdempotencyKey(_ANY_CALLER, f"replay:{new_id}", call.request)
                return self._start(changed(call, new_id=new_id, shared_key=shared), compose, now, call.prepare)
        raise ApiError(
            409, "too_many_replays", f"{call.old_id!r} was replayed {_REPETITIONS} times; replay one of those tasks"
        )

    def _start(self, call: ReplayCall, compose: Composer, now: datetime, prepare: Prepare) -> str:
        def own(record: TaskRecord) -> TaskRecord:
            return prepare(replace(record, owner=call.caller))

        key = call.key or call.shared_key
        if key is not None:
            return self.starter.start_once(compose, key, call.new_id, now, own)
        return self.starter.start(compose, call.caller, call.new_id, now, own)

    def _link(self, call: ReplayCall, new: TaskRecord, now: datetime) -> tuple[ReplayLink, ReplayLink | None]:
        """Write the link into the record of the old task; return it, and the link that was there before.

        Raises:
            _Known: the link is there, and the message was sent.
            _Begun: the link is that of a call that died.
            ApiError: 409 if the task is settled, or if another call replays it.
        """
        link = ReplayLink(
            id=new.id,
            at=new.created_at,
            by=call.caller,
            request=call.request,
            lease_until=format_time(now + _LEASE),
        )
        before: ReplayLink | None = None

        def decide(old: TaskRecord, _hops: HopFold) -> TaskRecord:
            nonlocal before
            before = old.replayed
            if before is not None and before.id == link.id:
                if before.lease_until is None:
                    raise _Known(before)
                self._check_lease(old.id, before, now)
            elif not call.force:
                self._check_no_other(call, old, now)
            return replace(old, replayed=link, dismissed=None)

        self.tasks.update(call.old_id, decide, now)
        return link, before

    def _check_no_other(self, call: ReplayCall, old: TaskRecord, now: datetime) -> None:
        """Check that no other replay has settled a task, or is about to."""
        link = old.replayed
        if link is not None and link.lease_until is not None:
            new = self.tasks.read(link.id, now)
            if new is None or new.is_pending:
                self._check_lease(old.id, link, now)
            if new is not None and new.is_pending:
                raise _Begun(link) if link.request == call.request else other_request_error(old.id, link)
        self.check(old, now)

    @staticmethod
    def _check_lease(task_id: str, link: ReplayLink, now: datetime) -> None:
        if link.lease_until is not None and parse_time(link.lease_until) > now:
            raise in_progress_error(task_id, link)

    def _finish(self, call: ReplayCall, link: ReplayLink, compose: Composer, now: datetime) -> str:
        """Send the message of a replay that another call has begun; its record exists."""
        self.starter.start(compose, link.by, link.id, now, call.prepare, created_at=parse_time(link.at))
        self._complete(call.old_id, link.id, now)
        if call.key is not None:  # a repetition of this call finds the task running, and has the same answer
            raise settled_error(call.old_id, Resolution(how="replayed", task=link.id, status=states.PENDING))
        return link.id

    def _complete(self, old_id: str, new_id: str, now: datetime) -> None:
        """Note in a link that the message was sent. A failure must not fail the call, because the task runs."""
        self._clean_up(lambda: self.tasks.update(old_id, lambda old, _: completed(old, new_id), now))

    def _unlink(self, old_id: str, link: ReplayLink, before: ReplayLink | None, now: datetime) -> None:
        """Restore the link that was there before a replay whose message no queue has accepted."""
        self._clean_up(lambda: self.tasks.update(old_id, lambda old, _: unlinked(old, link, before), now))

    def _clean_up(self, action: Callable[[], object]) -> None:
        try:
            action()
        except TaskStoreError as error:
            self.starter.warn(str(error))


def completed(old: TaskRecord, new_id: str) -> TaskRecord:
    """The record of a replayed task after the message of its replay was sent. The link of another replay stays as it is."""
    link = old.replayed
    return replace(old, replayed=replace(link, lease_until=None)) if link and link.id == new_id else old


def unlinked(old: TaskRecord, link: ReplayLink, before: ReplayLink | None) -> TaskRecord:
    """The record of a task with the link that it had before a replay which was not sent.

    A call that has taken the replay over has written a link of its own, with another lease. That one stays.
    """
    return replace(old, replayed=before) if old.replayed == link else old
