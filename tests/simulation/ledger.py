"""The onlooker's book: what has happened so far, and what must not have."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.protocol import ids, names
from asya.protocol.mesh_table import MeshTable
from tests.simulation.heavy.run_registry import RunRegistry
from tests.simulation.observed_envelope import ObservedEnvelope, read_envelope
from tests.simulation.process import Simulation
from tests.simulation.programs import HandlerCall, OutputFrame, Trail
from tests.simulation.queues import Message
from tests.simulation.sets import SetRegistry

TERMINAL = ("succeeded", "failed", "canceled")
MAX_VIOLATIONS = 20
# Queues whose messages are no envelopes.
SYSTEM_QUEUES = (names.DISPATCH, names.COMPLETION)


@dataclass
class Ledger:
    """What has happened so far.

    Attributes:
        stops_at_first_violation: whether the first violation ends the schedule.
        has_redrives: whether dead letters were sent again, in another generation.
        waiting_on: gives how many messages there are on a queue, those at work included.
        jobs_are_calm: whether events of job runs come, and drivers come to their end.
        violations: what must not have happened.
        accepted: every envelope that a queue has taken and the actor whose queue it was, by id.
        messages_of: the ids of the messages that brought an envelope.
        unreadable: messages that are no envelopes, with the id that they are to end under.
        canceled: tasks that were canceled while they ran.
        calls: every call of a handler, by actor and trail.
        frames: who gave which frame, by trail.
        stored: slices that their fan-in actor has taken.
        crash_causes: message id → the calls that ended a process while it was in their batch.
    """

    simulation: Simulation
    mesh: MeshTable
    objects: Mapping[str, bytes]
    tables: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]]
    stops_at_first_violation: bool = False
    has_redrives: bool = False
    waiting_on: Callable[[str], int] = lambda _: 0
    jobs_are_calm: bool = True
    violations: list[str] = field(default_factory=list)
    accepted: dict[str, list[tuple[ObservedEnvelope, str]]] = field(default_factory=lambda: defaultdict(list))
    messages_of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unreadable: dict[str, Message] = field(default_factory=dict)
    canceled: dict[str, float] = field(default_factory=dict)
    calls: dict[tuple[str, Trail], list[HandlerCall]] = field(default_factory=lambda: defaultdict(list))
    frames: dict[Trail, OutputFrame] = field(default_factory=dict)
    ids_of_trails: dict[Trail, str] = field(default_factory=dict)
    accepted_trails: set[Trail] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    crash_causes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    dead_letters: list[Message] = field(default_factory=list)
    marked: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the books of sets and of job runs."""
        self.sets = SetRegistry(self.mesh, self.tables["fan-in"])
        self.runs = RunRegistry(
            self.mesh, lambda: self.is_calm, self.report_violation, self.objects, self.tables["pending"]
        )

    @property
    def is_calm(self) -> bool:
        """Whether no service, no process and no job run fails but by what handlers do, and no event is lost."""
        return self.simulation.faults.weather.is_calm and self.jobs_are_calm

    def report_violation(self, rule: str) -> None:
        """Note that something happened that must not."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(f"at {self.simulation.scheduler.seconds:.3f} s: {rule}")
        if self.stops_at_first_violation:
            self.simulation.scheduler.stop()
        self.simulation.log.note(self.simulation.scheduler.seconds, "VIOLATION", rule)

    def record_redrive(self, message: Message) -> None:
        """A dead letter was sent again: it is to end like any other message."""
        self.has_redrives = True
        self.dead_letters = [one for one in self.dead_letters if one is not message]

    def read(self, message: Message) -> ObservedEnvelope | None:
        """The envelope that a message carries; None if it is none."""
        return read_envelope(message.body, self.objects)

    def actor_of(self, queue: str) -> str:
        """Whose queue it is."""
        return queue.removeprefix(f"asya-{self.mesh.namespace}-")


def expected_id(message: Message) -> str:
    """The id under which a message that is no envelope ends."""
    try:
        found = json.loads(message.body)
    except ValueError:
        return ids.id_of_message(message.message_id)
    usable = isinstance(found, dict) and isinstance(found.get("id"), str) and found["id"]
    return found["id"] if usable else ids.id_of_message(message.message_id)


def hop_key(envelope: ObservedEnvelope) -> tuple[str, str]:
    """The key under which this attempt at this hop is marked as done."""
    return envelope.id, f"{envelope.generation:04d}#{len(envelope.prev):06d}#{envelope.attempt:06d}"


def frames_key(envelope: ObservedEnvelope) -> str:
    """Where the frames of the hop that begins with an envelope are kept."""
    return f"frames/{envelope.id}/{envelope.generation}/{len(envelope.prev)}.json"


def stable_trail(trail: Trail) -> Trail:
    """The trail but for what makes its last frame different each time."""
    return (*trail[:-1], trail[-1].partition("~")[0])
