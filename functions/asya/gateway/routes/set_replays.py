"""Replays an origin whose set failed: its fan-out is repeated as the set of a new task (`protocol §12.set`)."""

from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import replace

from asya.dead_letters import set_replay
from asya.dead_letters.aws.replay_sources import ReplaySources
from asya.dead_letters.replay import Replayed, ReplayRequest
from asya.dead_letters.set_replay import FanOut
from asya.fan_in import repeats
from asya.fan_in.aws.set_repeats import SetRepeats
from asya.fan_in.aws.sets import FanInSets
from asya.gateway.aws.task_starter import Composer, TaskStarter
from asya.gateway.idempotency import IdempotencyKey
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True)
class SetReplays:
    """Starts the replays of failed sets. The fan-in actor sends and copies the slices, because there may be 5,000.

    Attributes:
        keep_seconds: how long the record of a replay is kept.
    """

    tasks: Tasks
    starter: TaskStarter
    sources: ReplaySources
    sets: FanInSets
    records: SetRepeats
    keep_seconds: float

    def start(self, asked: ReplayRequest, stored: Envelope, compose: Composer, owner: str, now: datetime) -> Replayed:
        """Start the replay of a failed set; a repeated call finds the task of the first one.

        Args:
            stored: the origin as it failed.
            compose: builds the message to the fan-in actor.
            owner: the principal of the caller.

        Raises:
            ApiError: 409 if the frames or the results are not stored, 503 if a service is unavailable.
        """
        fan_out = self._fan_out(stored)
        with table_errors(f"read the set {fan_out.set_id}"):
            old_set = self.sets.get(fan_out.set_id)
        slices = set_replay.repeated_slices(asked, fan_out, old_set.state if old_set is not None else None)
        task_id = self._task_id(asked, fan_out, now)
        record_id = repeats.record_id(replace(stored, id=task_id))
        expires_at = now.timestamp() + self.keep_seconds
        with table_errors(f"record the replay of the set {fan_out.set_id}"):
            self.records.save(record_id, set_replay.repeat_of(asked, fan_out), expires_at=expires_at)
        # With a key a call that died after it wrote the task's record is finished by the next one.
        self.starter.start_once(compose, IdempotencyKey(owner, f"replay:{task_id}", task_id), task_id, now)
        return Replayed(id=task_id, replay_of=stored.id, source=fan_out.uri, slices=slices)

    def _fan_out(self, stored: Envelope) -> FanOut:
        try:
            return set_replay.check_frames_are_kept(self.sources.fan_out(stored), stored)
        except (ClientError, BotoCoreError) as error:
            problem = f"the frames of {stored.id!r} are unavailable; try again ({error})"
            raise ApiError(503, "unavailable", problem) from error

    def _task_id(self, asked: ReplayRequest, fan_out: FanOut, now: datetime) -> str:
        for task_id in set_replay.task_ids(asked, fan_out):
            if not set_replay.is_taken(self.tasks.read(task_id, now)):
                return task_id
        raise set_replay.too_many(fan_out)
