"""The ledger: records the events of a schedule and its violations."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya.protocol import ids, names
from asya.protocol.mesh_table import MeshTable
from asya.testing.services.process import Simulation
from asya.testing.services.queues import Message
from tests.simulation.checks.observed_envelope import ObservedEnvelope, read_envelope, target_of
from tests.simulation.checks.report_queues import ReportRegistry
from tests.simulation.checks.sets import SetRegistry
from tests.simulation.ends.registry import EndRegistry
from tests.simulation.heavy.run_registry import RunRegistry
from tests.simulation.inputs.programs import HandlerCall, OutputFrame, Trail
from tests.simulation.invocation import ObservedInvocation
from tests.simulation.pauses.registry import PauseRegistry
from tests.simulation.waits.registry import WaitRegistry

TERMINAL = ("succeeded", "failed", "canceled")
MAX_VIOLATIONS = 20
# Queues whose messages are not envelopes.
SYSTEM_QUEUES = (names.DISPATCH, names.COMPLETION)


@dataclass
class Ledger:
    """The events of a schedule so far.

    Attributes:
        stops_at_first_violation: whether the first violation ends the schedule.
        handlers_are_mended: whether an operator has mended the handlers that crash their process.
        has_redrives: whether an operator has redriven dead letters.
        message_count: returns the number of messages on a queue, also those in flight.
        acked_at: queue → the time when a message of it was last acknowledged.
        volatile_actors: actors that only one of two deployed versions of the mesh has.
        jobs_are_fault_free: whether all events of job runs arrive and all drivers end by themselves.
        violations: the violations, with their times.
        accepted: envelope id → each accepted envelope and the actor of its queue.
        messages_of: envelope id → ids of the messages with this envelope.
        children: id of a child → the hop that gave it: parent, generation, position.
        unreadable: messages that are not envelopes, by the id under which they end.
        canceled: task id → the time of its cancellation.
        said: task id and generation → the status that the answer to a cancellation has promised.
        calls: all calls of handlers, by actor and trail.
        frames: the output frames, by trail.
        ids_of_trails: trail and generation → the id of the frame.
        stored_slices: ids of the slices that their fan-in actor stored.
        crash_causes: message id → the calls that crashed a process with this message in its batch.
        saved_frames: the time when a list of frames was first saved, by its key.
        completed_hops: deduplication key → the time when the hop was marked as completed.
        kept: ids of the envelopes whose messages were received again.
        died_with: ids of the messages in whose batch a process has died.
        deaths: message id → how many processes it has killed.
        receives: message id → how often it was received, each copy that SQS delivered included.
    """

    simulation: Simulation
    mesh: MeshTable
    objects: Mapping[str, bytes]
    tables: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]]
    stops_at_first_violation: bool = False
    handlers_are_mended: bool = False
    has_redrives: bool = False
    message_count: Callable[[str], int] = lambda _: 0
    acked_at: dict[str, float] = field(default_factory=dict)
    volatile_actors: frozenset[str] = frozenset()
    jobs_are_fault_free: bool = True
    violations: list[str] = field(default_factory=list)
    accepted: dict[str, list[tuple[ObservedEnvelope, str]]] = field(default_factory=lambda: defaultdict(list))
    messages_of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    children: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    unreadable: dict[str, Message] = field(default_factory=dict)
    canceled: dict[str, float] = field(default_factory=dict)
    said: dict[tuple[str, int], str] = field(default_factory=dict)
    calls: dict[tuple[str, Trail], list[HandlerCall]] = field(default_factory=lambda: defaultdict(list))
    frames: dict[Trail, OutputFrame] = field(default_factory=dict)
    ids_of_trails: dict[tuple[Trail, int], str] = field(default_factory=dict)
    accepted_trails: set[Trail] = field(default_factory=set)
    stored_slices: set[str] = field(default_factory=set)
    crash_causes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    dead_letters: list[Message] = field(default_factory=list)
    saved_frames: dict[str, float] = field(default_factory=dict)
    completed_hops: dict[tuple[str, str], float] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    died_with: set[str] = field(default_factory=set)
    deaths: Counter[str] = field(default_factory=Counter)
    receives: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Create the registries of reports, of sets, of pauses, of waits, of ends and of job runs."""
        self.reports = ReportRegistry(self.simulation, self.tables["tasks"])
        self.sets = SetRegistry(self.mesh, self.tables["fan-in"])
        self.waits = WaitRegistry(self.objects, self.tables["tasks"])
        self.pauses = PauseRegistry(self.mesh, self.objects, self.tables["tasks"], self.report_violation)
        self.ends = EndRegistry(self.tables["sink"])
        self.runs = RunRegistry(
            self.mesh,
            lambda: self.is_fault_free,
            self.report_violation,
            self.objects,
            self.tables["pending"],
            has_passed_pause=lambda envelope: self.pauses.passed_at(envelope) is not None,
        )

    @property
    def is_fault_free(self) -> bool:
        """Whether only handlers cause failures, and no event is lost."""
        return self.simulation.faults.profile.is_fault_free and self.jobs_are_fault_free

    def report_violation(self, problem: str) -> None:
        """Record a violation."""
        if len(self.violations) < MAX_VIOLATIONS:
            self.violations.append(f"at {self.simulation.scheduler.seconds:.3f} s: {problem}")
        if self.stops_at_first_violation:
            self.simulation.scheduler.stop()
        self.simulation.log.note(self.simulation.scheduler.seconds, "VIOLATION", problem)

    def new_invocation(self, actor: str, messages: list[Message], began: float) -> ObservedInvocation:
        """Begin an invocation of a function, and count the receives of its messages."""
        self.receives.update(message.message_id for message in messages)
        return ObservedInvocation(actor, messages, began)

    def record_redrive(self, message: Message) -> None:
        """Record that a dead letter was redriven; its envelope must end like any other."""
        self.has_redrives = True
        self.dead_letters = [letter for letter in self.dead_letters if letter is not message]
        own_id = ids.id_of_message(message.message_id)
        if any(copy.body == message.body for key, copy in self.unreadable.items() if key != own_id):
            # It has a new message id, under which it ends.
            self.unreadable.pop(own_id, None)

    def record_move(self, message: Message) -> None:
        """Record that SQS moved a dead letter back; its envelope must end like any other."""
        self.dead_letters = [letter for letter in self.dead_letters if letter is not message]

    def read(self, message: Message) -> ObservedEnvelope | None:
        """Read the envelope of a message; None if it is not an envelope."""
        return read_envelope(message.body, self.objects)

    def actor_of(self, queue: str) -> str:
        """Return the actor of a queue."""
        return queue.removeprefix(f"asya-{self.mesh.namespace}-")


def expected_id(message: Message) -> str:
    """Return the id under which an unreadable message ends."""
    try:
        content = json.loads(message.body)
    except ValueError:
        return ids.id_of_message(message.message_id)
    has_id = isinstance(content, dict) and isinstance(content.get("id"), str) and content["id"]
    return content["id"] if has_id else ids.id_of_message(message.message_id)


def hop_key(envelope: ObservedEnvelope) -> tuple[str, str]:
    """Return the deduplication key of this attempt at this hop."""
    actor = target_of(envelope, envelope.curr)
    return f"{actor}#{envelope.id}", f"{envelope.generation:04d}#{len(envelope.prev):06d}#{envelope.attempt:06d}"


def frames_key(envelope: ObservedEnvelope) -> str:
    """Return the S3 key of the buffered frames of a hop."""
    actor = target_of(envelope, envelope.curr)
    return f"buffered/{actor}/{envelope.id}/{envelope.generation}/{len(envelope.prev)}.json"


def without_fingerprint(name: str) -> str:
    """Return the key of buffered frames, or of a mark, without the fingerprint: nobody forges an envelope to an actor here."""
    return re.sub(r"[-#][0-9a-f]{16}(\.json)?$", r"\1", name).removesuffix("#")


def kept_frames(objects: Mapping[str, bytes], envelope: ObservedEnvelope) -> bytes | None:
    """Return the buffered frames of a hop; None without any."""
    key = frames_key(envelope)
    folder = key.rpartition("/")[0]
    kept = (body for name, body in objects.items() if name.startswith(folder) and without_fingerprint(name) == key)
    return next(kept, None)


def stable_trail(trail: Trail) -> Trail:
    """Return the trail without the call number of its last frame."""
    return (*trail[:-1], trail[-1].partition("~")[0])
