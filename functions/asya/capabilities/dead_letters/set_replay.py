"""Decides how an origin whose set failed is replayed: its fan-out is repeated as a new set (`protocol §12.set`)."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import UNSET

from asya.capabilities.dead_letters.replay import RepeatedSlices, ReplayRequest, ReplayStart, replay_envelope
from asya.capabilities.fan_in.sets import ORIGIN, SetRepeat, SetState, fan_out_position
from asya.function.targets import actual_actor
from asya.protocol import headers, ids
from asya.protocol.api_errors import ApiError
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import slice_header
from asya.tasks.view import TaskView

_GENERATION_AND_POSITION = re.compile(r"(\d+)/(\d+)(?:-[0-9a-f]+)?\.json")
# So often a replay of one origin may fail and be called again, before one of those tasks must be replayed itself.
_REPETITIONS = 100


@dataclass(frozen=True, slots=True)
class FanOut:
    """A fan-out whose frames are kept.

    Attributes:
        uri: the address of its frames.
    """

    origin_id: str
    generation: int
    position: int
    uri: str

    @property
    def set_id(self) -> str:
        """The id of the set that it opened."""
        return ids.set_id(self.origin_id, self.generation, self.position)


def origin_of_set(stored: Envelope, mesh: MeshTable) -> Envelope | None:
    """The origin that failed at its fan-in actor, outside of its set; None for any other envelope, also for slices.

    The dead letter of an origin is still slice 0 of its set.
    """
    curr = stored.route.curr
    spec = mesh.actors.get(actual_actor(stored, curr)) if curr else None
    if spec is None or spec.kind != "fan_in" or not stored.route.prev:
        return None
    try:
        header = slice_header(stored)
    except ValueError:
        return None  # the replay of the envelope itself names what is wrong
    if header is not None and (header.slice_index != ORIGIN or header.outer is not UNSET):
        return None
    return stored.with_headers({headers.FAN_IN: None})


def latest_fan_out(stored: Envelope, folder: str, uris: Iterable[str]) -> FanOut | None:
    """Choose the fan-out before an envelope's fan-in actor: of the latest generation, because a redrive may have followed.

    Args:
        folder: the folder of the kept frames of this envelope; ends with `/`.
        uris: the objects in this folder.
    """
    position = fan_out_position(stored)
    by_generation = {
        int(match[1]): uri
        for uri in uris
        if (match := _GENERATION_AND_POSITION.fullmatch(uri.removeprefix(folder))) and int(match[2]) == position
    }
    generation = max((each for each in by_generation if each <= stored.generation), default=None)
    return None if generation is None else FanOut(stored.id, generation, position, by_generation[generation])


def check_frames_are_kept(fan_out: FanOut | None, stored: Envelope) -> FanOut:
    """Check that the frames of a fan-out were found.

    Raises:
        ApiError: 409 if they are not kept.
    """
    if fan_out is None:
        position, actor = fan_out_position(stored), stored.route.prev[-1]
        problem = (
            f"the frames that {stored.id!r} gave at hop {position} ({actor!r}) are not stored: they have expired, or the "
            f"actor is heavy; `asya replay {shlex.quote(stored.id)} --from {position}` runs the fan-out again, if its actor has "
            "keep_input"
        )
        raise ApiError(409, "nothing_to_replay", problem)
    return fan_out


def repeated_slices(request: ReplayRequest, fan_out: FanOut, state: SetState | None) -> RepeatedSlices:
    """Say which slices run again.

    Args:
        state: the state of the old set; None if it has expired.

    Raises:
        ApiError: 409 if only the lost slices should run, but nobody knows them any more.
    """
    total = state.slice_count - 1 if state is not None else None
    if not request.failed_only:
        return RepeatedSlices(total=total, copied=0, again=None)
    if state is None:
        problem = (
            f"the results of the set of {fan_out.origin_id!r} are no longer stored (`ttl` of its fan-in actor); "
            "replay all of its slices, without failed_only"
        )
        raise ApiError(409, "set_expired", problem)
    return RepeatedSlices(total=total, copied=len(state.arrived - {ORIGIN}), again=tuple(sorted(state.missing)))


def task_ids(request: ReplayRequest, fan_out: FanOut) -> Iterator[str]:
    """The possible ids of the new task, so that a repeated call finds the task of the first one."""
    what = "failed-only" if request.failed_only else "all"
    for number in range(_REPETITIONS):
        yield ids.repeat_id(fan_out.set_id, what, number)


def is_taken(task: TaskView | None) -> bool:
    """Whether a task that repeats a set has failed or was canceled, so that another call starts the next one.

    After a provisional end it may still succeed.
    """
    return task is not None and task.has_ended_badly and not task.provisional


def too_many(fan_out: FanOut) -> ApiError:
    """The error after too many failed replays of one set."""
    problem = f"the set of {fan_out.origin_id!r} was replayed {_REPETITIONS} times; replay one of those tasks"
    return ApiError(409, "too_many_replays", problem)


def repeat_of(request: ReplayRequest, fan_out: FanOut) -> SetRepeat:
    """What the fan-in actor needs to know."""
    return SetRepeat(
        origin_id=fan_out.origin_id,
        generation=fan_out.generation,
        position=fan_out.position,
        keeps_results=request.failed_only,
    )


def repeating_envelope(stored: Envelope, mesh: MeshTable, start: ReplayStart) -> Envelope:
    """The envelope that asks the fan-in actor to repeat the fan-out.

    Raises:
        ApiError: 409 if the envelope cannot start there.
    """
    return replay_envelope(stored, mesh, start, repeats_set=True).with_headers({headers.SET_REPEAT: True})
