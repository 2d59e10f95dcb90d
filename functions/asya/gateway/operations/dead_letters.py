"""The dead letters of a mesh, for operators (`protocol §13`, operations)."""

from dataclasses import dataclass
from datetime import datetime

from asya.capabilities.dead_letters.letters import DeadLetter, watched_actors
from asya.capabilities.operations.aws.letter_scan import LetterScan
from asya.capabilities.operations.dead_letters import (
    LetterPage,
    LetterQueue,
    LetterView,
    bounded,
    letter_view,
    read_limit,
)
from asya.gateway.http.router import Request, Response
from asya.gateway.operations.requests import available
from asya.protocol import names
from asya.protocol.api_errors import ApiError
from asya.protocol.ids import is_usable
from asya.protocol.mesh_table import MeshTable
from asya.tasks.aws.tasks import Tasks


@dataclass(frozen=True, slots=True)
class DeadLetterRoutes:
    """Shows dead letters. All of them stay in their queues."""

    mesh: MeshTable
    tasks: Tasks
    scan: LetterScan

    def all(self, request: Request, now: datetime) -> Response:
        """`GET …/dead-letters`: the dead letters of one actor, or of all."""
        limit, actors = read_limit(request.query), self._actors(request.query.get("actor"))
        with available("the dead letters"):
            counts = self.scan.counts(actors)
            scanned = self.scan.read([actor for actor in actors if counts[actor].visible], limit)
        queues = [
            LetterQueue(actor=actor, visible=count.visible, hidden=count.hidden)
            for actor, count in counts.items()
            if count.total
        ]
        # Read after the scan, which hides the letters from others.
        items = [self._view(letter, now) for letter in scanned.letters]
        return Response(200, LetterPage(items=bounded(items), queues=queues, has_more=scanned.has_more))

    def _view(self, letter: DeadLetter, now: datetime) -> LetterView:
        envelope = letter.envelope
        task = self.tasks.read(envelope.id, now) if envelope is not None and is_usable(envelope.id) else None
        actor = self.mesh.actors.get(letter.actor)
        return letter_view(letter, task, letter.arrival.sent_at, actor.queue_receives if actor is not None else None)

    def _actors(self, actor: str | None) -> tuple[str, ...]:
        watched = watched_actors(self.mesh)
        if actor is not None and actor not in watched:
            problem = f"there is no dead-letter queue of {actor[: names.LABEL_LIMIT]!r}"
            raise ApiError(404, "unknown_actor", problem, "actor")
        return watched if actor is None else (actor,)
