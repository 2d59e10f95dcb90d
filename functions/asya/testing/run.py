"""A run: an envelope that a test has sent, and what became of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from asya.client.calls import to
from asya.protocol import states
from asya.protocol.keys import RESULTS_PREFIX
from asya.protocol.pause import PauseField
from asya.protocol.states import ViewStatus
from asya.protocol.task import Resolution
from asya.protocol.times import parse_time
from asya.tasks.http_calls import TASK, TIMELINE
from asya.tasks.listing import TimelineEntry
from asya.tasks.view import TaskView
from asya.testing.errors import NotSucceededError
from asya.testing.isolation import on_own_clock

if TYPE_CHECKING:
    from asya.testing.mesh import Mesh

_STORED = (states.SUCCEEDED, states.FAILED, states.CANCELED, "sump")


@dataclass(frozen=True)
class Hop:
    """One attempt at one hop, as the timeline of the task has it.

    Attributes:
        position: the number of the hop in the route, from 0.
        attempt: 1 for the first.
        is_completed: whether the attempt gave its frames.
    """

    actor: str
    position: int
    attempt: int
    is_completed: bool

    def __repr__(self) -> str:
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        return f"<{self.actor}{again}{'' if self.is_completed else ', not completed'}>"


@dataclass(frozen=True)
class RunError:
    """An error of one attempt: it failed the envelope, or a retry followed.

    Attributes:
        id: the id of the envelope.
        type: the name of the exception with its module, such as `orders.OutOfStock`; builtins have none.
        ancestors: the names of the ancestors of its class.
        is_final: whether the envelope failed by it.
    """

    id: str
    actor: str
    attempt: int
    type: str
    message: str
    ancestors: tuple[str, ...]
    traceback: str
    is_final: bool

    def __str__(self) -> str:
        """The error and its traceback."""
        where = f"{self.actor}, attempt {self.attempt}: {self.type}: {self.message}"
        return f"{where}\n{self.traceback}" if self.traceback else where


@dataclass(frozen=True)
class Question:
    """What a paused run waits for; `Mesh.answer` answers it, and so does `Mesh.call_back` if there is a link (`callback`).

    Attributes:
        shown: what those who answer see of the payload: the text of each value by its pointer, None for a missing one.
    """

    prompt: str
    fields: tuple[PauseField, ...]
    callback: str | None = None
    shown: Mapping[str, str | None] = field(default_factory=dict)


@on_own_clock
@dataclass(frozen=True, eq=False)
class Run:
    """An envelope that was sent to a mesh. Its properties are what the mesh knows now. Runs are equal by mesh and id.

    Attributes:
        id: the id of the envelope.
    """

    mesh: "Mesh"
    id: str

    @property
    def status(self) -> ViewStatus:
        """The status of the task; `unknown` for an envelope without a task."""
        view = self._view()
        return view.status if view is not None else states.UNKNOWN

    @property
    def result(self) -> Any:
        """The payload with which the run succeeded.

        Raises:
            NotSucceededError: the run has another status; the message has its errors.
        """
        stored = self._stored(states.SUCCEEDED)
        if stored is not None:
            return stored["payload"]
        view = self._view()
        if view is not None and view.has_succeeded and view.result is not msgspec.UNSET:
            return json.loads(bytes(view.result))
        raise NotSucceededError(self._problem())

    @property
    def payload(self) -> Any:
        """The payload of the end, also of a failed one; of the last message if the run has not ended."""
        for prefix in _STORED:
            stored = self._stored(prefix)
            if stored is not None:
                return stored["payload"]
        return json.loads(bytes(self.mesh.sent(self.id)[-1].payload))

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The attempts at the hops in order; none without a record. Children have their own."""
        timeline = self.mesh.ask(*to(TIMELINE, id=self.id), _Timeline, or_none=True)
        entries = timeline.items if timeline is not None else ()
        return tuple(
            Hop(entry.actor, entry.position, entry.attempt, entry.completed_at is not None) for entry in entries
        )

    @property
    def actors(self) -> tuple[str, ...]:
        """The actors that completed a hop, in the order of the route."""
        completed = {hop.position: hop.actor for hop in self.hops if hop.is_completed}
        return tuple(completed[position] for position in sorted(completed))

    @property
    def children(self) -> tuple["Run", ...]:
        """The frames after the first, the slices of fan-outs and other envelopes that descend from this one directly."""
        return tuple(Run(self.mesh, child) for child in self.mesh.children_of(self.id))

    @property
    def errors(self) -> tuple[RunError, ...]:
        """The errors of this run and of its children: of failed attempts that were retried, and of ends."""
        own: dict[tuple[int, int, str], RunError] = {}
        for envelope in self.mesh.sent(self.id):
            status = envelope.status
            if status is None or status.error is None:
                continue
            is_final = status.phase == states.FAILED
            attempt = status.attempt or 1
            attempt = attempt if is_final else max(1, attempt - 1)
            own[len(envelope.route.prev), attempt, status.error.type] = RunError(
                id=self.id,
                actor=status.actor or envelope.route.curr,
                attempt=attempt,
                type=status.error.type,
                message=status.error.message,
                ancestors=tuple(status.error.mro),
                traceback=status.error.traceback,
                is_final=is_final,
            )
        if not any(error.is_final for error in own.values()) and (last := self._error_of_record()) is not None:
            own[1 << 30, last.attempt, last.type] = last
        return (*own.values(), *(error for child in self.children for error in child.errors))

    @property
    def partials(self) -> tuple[Any, ...]:
        """What the handlers and jobs of this run said on their way, as a stream shows it: what they yielded with `FLY`."""
        return tuple(self.mesh.partials_of(self.id))

    @property
    def question(self) -> Question | None:
        """What a paused run waits for; None if it does not wait."""
        view = self._view()
        pause = view.pause if view is not None and view.is_paused else None
        if pause is None:
            return None
        callback = pause.callback if pause.callback is not UNSET else None
        shown = {each.pointer: each.text for each in pause.shown or ()}
        return Question(pause.prompt, pause.fields, callback, shown)

    @property
    def waiting_until(self) -> datetime | None:
        """When a run goes on that waits for a time (`kind: wait`); None if it does not wait. `Mesh.travel` lets time pass."""
        view = self._view()
        return parse_time(view.waiting_until) if view is not None and view.waiting_until is not None else None

    @property
    def resolution(self) -> Resolution | None:
        """What became of the failure of the run: its replay, a dismissal, or a run that overtook it; None while it is open."""
        view = self._view()
        return view.resolution if view is not None else None

    def __eq__(self, other: object) -> bool:
        """Whether both are the same envelope of the same mesh."""
        return isinstance(other, Run) and (other.mesh, other.id) == (self.mesh, self.id)

    def __hash__(self) -> int:
        """See `__eq__`."""
        return hash((self.mesh, self.id))

    def __repr__(self) -> str:
        """The id, the status and the way."""
        return f"<Run {self.id} {self.status}: {' → '.join(self.actors) or 'no hop completed'}>"

    def _error_of_record(self) -> RunError | None:
        view = self._view()
        if view is None or view.error is None:
            return None
        error, actor = view.error, view.actor or ""
        return RunError(
            self.id, actor, view.attempt or 1, error.type, error.message, error.mro, error.traceback, is_final=True
        )

    def _view(self) -> TaskView | None:
        view: TaskView | None = self.mesh.ask(*to(TASK, id=self.id), TaskView, or_none=True)
        return view

    def _stored(self, prefix: str) -> Mapping[str, Any] | None:
        body = self.mesh.objects.get(f"{RESULTS_PREFIX}{prefix}/{self.id}.json")
        stored: Mapping[str, Any] | None = json.loads(body) if body is not None else None
        return stored

    def _problem(self) -> str:
        status, errors = self.status, self.errors
        if status == states.PAUSED and (question := self.question) is not None:
            names = ", ".join(field.name for field in question.fields)
            return f"run {self.id} is paused: {question.prompt!r}; answer it with mesh.answer(run, {names or ''}=…)"
        text = "\n".join(str(error) for error in errors) or "the mesh is at rest, and nothing went wrong"
        hint = "" if status in states.ENDED_BADLY else "; mesh.travel(minutes=…) lets time pass"
        return f"run {self.id} {'' if status == states.FAILED else 'is '}{status}{hint}\n{text}"


class _Timeline(msgspec.Struct, frozen=True):
    items: tuple[TimelineEntry, ...]
