"""Replays an origin whose set failed: its fan-out is repeated as the set of a new task (`protocol §12.set`)."""

from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.capabilities.dead_letters import set_replay
from asya.capabilities.dead_letters.aws.replay_sources import ReplaySources
from asya.capabilities.dead_letters.aws.replay_starts import ReplayCall, ReplayStarts
from asya.capabilities.dead_letters.replay import Replayed, ReplayRequest
from asya.capabilities.dead_letters.set_replay import FanOut
from asya.capabilities.fan_in import repeats
from asya.capabilities.fan_in.aws.set_repeats import SetRepeats
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.task import TaskRecord
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import Composer
from asya.tasks.starts.idempotency import IdempotencyKey
from asya.tasks.view import TaskView

# The owner of the idempotency keys; no caller has an empty name.
_ANY_CALLER = ""


@dataclass(frozen=True)
class SetReplays:
    """Starts the replays of failed sets. The fan-in actor sends and copies the slices, because there may be 5,000.

    Attributes:
        starts: starts replays, and links them to the tasks that they replay.
        keep_seconds: how long the record of a replay is kept.
    """

    tasks: Tasks
    starts: ReplayStarts
    sources: ReplaySources
    sets: FanInSets
    records: SetRepeats
    keep_seconds: float

    def start(
        self, request: ReplayRequest, call: ReplayCall, stored: Envelope, compose: Composer, now: datetime
    ) -> Replayed:
        """Start the replay of a failed set; a repeated call finds the task of the first one.

        Args:
            request: what the call asks for.
            call: the call; the id of the new task is replaced by that of the repeated set.
            stored: the origin as it failed.
            compose: builds the message to the fan-in actor.
            now: the time of the call.

        Raises:
            ApiError: 409 if the frames or the results are not stored, or the replay belongs to another caller; 503 if a
                service is unavailable.
        """
        fan_out = self._fan_out(stored)
        with table_errors(f"read the set {fan_out.set_id}"):
            old_set = self.sets.get(fan_out.set_id)
        slices = set_replay.repeated_slices(request, fan_out, old_set.state if old_set is not None else None)
        task_id, task = self._task(request, fan_out, now)
        _check_owner(task, call.caller)
        if call.key is None and task is not None and task.status != "pending":
            return Replayed(id=task_id, replay_of=stored.id, source=fan_out.uri, slices=slices)

        def prepare(record: TaskRecord) -> TaskRecord:
            record_id = repeats.record_id(replace(stored, id=record.id))
            expires_at = now.timestamp() + self.keep_seconds
            with table_errors(f"record the replay of the set {fan_out.set_id}"):
                self.records.save(record_id, set_replay.repeat_of(request, fan_out), expires_at=expires_at)
            return record

        # With a key a call that died after it wrote the task's record is finished by the next one. All callers share it.
        shared = IdempotencyKey(_ANY_CALLER, f"replay:{task_id}", task_id)
        new_id = self.starts.start(changed(call, new_id=task_id, shared_key=shared, prepare=prepare), compose, now)
        # Another caller may have started it in the meantime.
        _check_owner(self.tasks.read(new_id, now), call.caller)
        return Replayed(id=new_id, replay_of=stored.id, source=fan_out.uri, slices=slices)

    def _fan_out(self, stored: Envelope) -> FanOut:
        try:
            return set_replay.check_frames_are_kept(self.sources.fan_out(stored), stored)
        except (ClientError, BotoCoreError) as error:
            problem = f"the frames of {stored.id!r} are unavailable; try again"
            raise ApiError(503, "unavailable", problem) from error

    def _task(self, request: ReplayRequest, fan_out: FanOut, now: datetime) -> tuple[str, TaskView | None]:
        """The id of the task that repeats the set, and the task if it exists."""
        for task_id in set_replay.task_ids(request, fan_out):
            task = self.tasks.read(task_id, now)
            if task is None or not (request.force or set_replay.is_taken(task)):
                return task_id, task
        raise set_replay.too_many(fan_out)


def _check_owner(task: TaskView | None, owner: str) -> None:
    if task is not None and task.owner != owner:
        problem = "another caller has replayed this set; wait for the end of that task, or ask its owner"
        raise ApiError(409, "replayed_by_another", problem)
