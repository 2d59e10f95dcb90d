"""What must be true once everything has come to rest."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.cloud import Cloud
from tests.simulation.ledger import TERMINAL, expected_id
from tests.simulation.observed_envelope import ObservedEnvelope, read_envelope
from tests.simulation.queues import Message
from tests.simulation.workload import Workload

END_PREFIXES = ("succeeded", "failed", "canceled", "paused", "sump")


@dataclass(frozen=True)
class FinalChecks:
    """The mesh when nothing is left to happen."""

    cloud: Cloud
    workload: Workload

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it."""
        yield from self._queues_are_empty()
        yield from self._nothing_is_lost()
        yield from self._dead_letters_have_a_cause()
        yield from self.cloud.ledger.sets.problems()
        yield from self.cloud.ledger.runs.problems()
        for envelope_id, envelope in self._last_seen():
            yield from self._ended_once(envelope_id, envelope)

    def _queues_are_empty(self) -> Iterator[str]:
        for queue in self.cloud.queues.queues.values():
            if queue.messages and queue.max_receives is not None:
                yield f"{len(queue.messages)} messages are left on {queue.name}"

    def _nothing_is_lost(self) -> Iterator[str]:
        """Every envelope that a queue has taken ended somewhere."""
        for envelope_id in self.cloud.ledger.accepted:
            if not self._has_ended(envelope_id):
                yield f"envelope {envelope_id} was accepted and ended nowhere"
        for message in self.cloud.ledger.unreadable.values():
            expected = expected_id(message)
            kept = any(message.message_id in key for key in self._objects)
            dead_lettered = any(dead.message_id == message.message_id for dead in self.cloud.ledger.dead_letters)
            if not (self._has_ended(expected) or kept or dead_lettered):
                yield f"the unreadable message {message.message_id} ({expected}) ended nowhere: {message.body[:200]}"
        for task_id in self.workload.started:
            if task_id not in self.cloud.ledger.accepted:
                yield f"task {task_id} was confirmed and never sent"

    def _has_ended(self, envelope_id: str) -> bool:
        if self._ends_of(envelope_id) or self._is_buried(envelope_id) or envelope_id in self.cloud.ledger.stored:
            return True
        envelope = self.cloud.ledger.accepted[envelope_id][0][0] if envelope_id in self.cloud.ledger.accepted else None
        if any(f"results/sump/unreadable/{one}" in self._objects for one in self.cloud.ledger.messages_of[envelope_id]):
            return True
        silent = not self.cloud.mesh.table.sink.persist or (envelope is not None and "x-asya-hook" in envelope.headers)
        return silent and (envelope_id, "claim") in self.cloud.ledger.tables["sink"]

    def _ends_of(self, envelope_id: str) -> set[str]:
        return {prefix for prefix in END_PREFIXES if f"results/{prefix}/{envelope_id}.json" in self._objects}

    def _is_buried(self, envelope_id: str) -> bool:
        return any(
            envelope.id == envelope_id
            for message in self.cloud.ledger.dead_letters
            if (envelope := self._read(message.body))
        )

    def _dead_letters_have_a_cause(self) -> Iterator[str]:
        """Where no service fails, only what kills its process is received too often: it does not take its neighbours along."""
        if self.cloud.simulation.faults.weather.until > 0:
            return
        for message in self.cloud.ledger.dead_letters:
            # Between two that kill their process some may never have their turn.
            if not self._is_poison(message) and len(self.cloud.ledger.crash_causes[message.message_id]) < 2:
                yield f"message {message.message_id} ended in the DLQ of {message.queue} without a cause"

    def _is_poison(self, message: Message) -> bool:
        envelope, actor = self._read(message.body), self.cloud.ledger.actor_of(message.queue)
        program = self.cloud.mesh.programs.get(actor)
        plan = program.plan(envelope.trail) if program and envelope and envelope.trail else None
        return plan is not None and plan.behavior == "poison"

    def _last_seen(self) -> Iterator[tuple[str, ObservedEnvelope]]:
        for envelope_id, messages in self.cloud.ledger.accepted.items():
            yield envelope_id, messages[-1][0]

    def _ended_once(self, envelope_id: str, envelope: ObservedEnvelope) -> Iterator[str]:
        """One terminal status, the same in the sink's claim, in the objects and in the record."""
        ends = self._ends_of(envelope_id)
        if len(ends - {"sump", "paused"}) > 1:
            yield f"envelope {envelope_id} ended as {', '.join(sorted(ends))}"
        claim = self.cloud.ledger.tables["sink"].get((envelope_id, "claim"))
        claimed = claim["phase"]["S"] if claim else None
        if claimed and not ends - {"sump", "paused"} <= {claimed}:
            yield f"envelope {envelope_id} is claimed as {claimed}, and its objects say {', '.join(sorted(ends))}"
        record = self.cloud.ledger.tables["tasks"].get((envelope_id, "record"))
        status = record["status"]["S"] if record else None
        if envelope.is_stealth:
            if record is not None:
                yield f"the stealth envelope {envelope_id} has a record"
            return
        if not self._has_ended(envelope_id):
            return
        if status is None and self._was_sent_to_the_end(envelope_id):
            return
        if status not in TERMINAL:
            how = ", ".join(sorted(ends)) or "dead_lettered or stored"
            yield f"envelope {envelope_id} has ended ({how}), and its record is {status or 'missing'}"
        elif claimed and claimed != status and envelope_id not in self.cloud.ledger.canceled:
            yield f"envelope {envelope_id} is claimed as {claimed}, and its record is {status}"

    def _was_sent_to_the_end(self, envelope_id: str) -> bool:
        """Whether no actor ever had it: somebody sent it straight to an end, as canceled or unreadable."""
        return all(actor in ("x-sink", "x-sump") for _, actor in self.cloud.ledger.accepted[envelope_id])

    @property
    def _objects(self) -> dict[str, bytes]:
        return self.cloud.bucket.objects

    def _read(self, body: str) -> ObservedEnvelope | None:
        return read_envelope(body, self._objects)
