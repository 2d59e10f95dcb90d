"""Checks of the final state, when no process has work."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from asya.protocol import ids
from asya.testing.dynamo.values import Item
from asya.testing.services.queues import Message
from tests.simulation.checks.ledger import TERMINAL, expected_id
from tests.simulation.checks.observed_envelope import REFERENCE, ObservedEnvelope, read_envelope
from tests.simulation.cloud import Cloud
from tests.simulation.inputs.workload import Workload

ENDS = ("x-sink", "x-sump")
END_PREFIXES = ("succeeded", "failed", "canceled", "paused", "sump")


@dataclass(frozen=True)
class FinalChecks:
    """Checks the final state of a schedule."""

    cloud: Cloud
    workload: Workload

    def problems(self) -> Iterator[str]:
        """The violations of the final state."""
        yield from self._queues_are_empty()
        yield from self._nothing_is_lost()
        yield from self._dead_letters_have_a_cause()
        yield from self._timeouts_name_the_outage()
        yield from self._refused_ends_are_kept()
        yield from self.cloud.ledger.sets.problems()
        yield from self.cloud.ledger.runs.problems()
        yield from self.cloud.ledger.ends.problems()
        for task_id in self.cloud.ledger.pauses.releases:
            yield f"the envelope of {task_id} was not released from its pause"
        for task_id in self.cloud.ledger.waits.unsent:
            yield f"the envelope of {task_id} did not go on after its wait"
        for envelope_id, generation in self.cloud.ledger.pauses.canceled:
            yield from self._is_kept_as_canceled(envelope_id, generation)
        for envelope_id, envelope in self._latest_envelopes():
            yield from self._ended_once(envelope_id, envelope)

    def _queues_are_empty(self) -> Iterator[str]:
        for queue in self.cloud.queues.queues.values():
            if queue.messages and queue.max_receives is not None:
                yield f"{len(queue.messages)} messages are left on {queue.name}"

    def _nothing_is_lost(self) -> Iterator[str]:
        """Each envelope that a queue accepted has ended."""
        for envelope_id in self.cloud.ledger.accepted:
            if not self._has_ended(envelope_id):
                yield f"envelope {envelope_id} was accepted and has not ended"
        for message in self.cloud.ledger.unreadable.values():
            expected = expected_id(message)
            is_saved = any(message.message_id in key for key in self._objects)
            is_dead_letter = any(dead.message_id == message.message_id for dead in self.cloud.ledger.dead_letters)
            if not (self._has_ended(expected) or is_saved or is_dead_letter):
                yield f"the unreadable message {message.message_id} ({expected}) has not ended: {message.body[:200]}"
        for task_id in self.workload.started:
            if task_id not in self.cloud.ledger.accepted:
                yield f"task {task_id} was confirmed, but its envelope was never sent"

    def _has_ended(self, envelope_id: str) -> bool:
        """Whether an envelope has ended, or waits in a pause."""
        if (
            self._ends_of(envelope_id)
            or self.cloud.ledger.pauses.is_paused(envelope_id)
            or self._is_dead_lettered(envelope_id)
            or envelope_id in self.cloud.ledger.stored_slices
            or self._is_kept_after_dead_letter(envelope_id)
        ):
            return True
        envelope = self.cloud.ledger.accepted[envelope_id][0][0] if envelope_id in self.cloud.ledger.accepted else None
        if any(
            f"results/sump/unreadable/{message_id}" in self._objects
            for message_id in self.cloud.ledger.messages_of[envelope_id]
        ):
            return True
        writes_no_object = not self.cloud.mesh.table.sink.persist or (
            envelope is not None and "x-asya-hook" in envelope.headers
        )
        return writes_no_object and self.cloud.ledger.ends.claim(envelope_id) is not None

    def _is_kept_as_canceled(self, envelope_id: str, generation: int) -> Iterator[str]:
        """A task that was canceled in its pause has the object of its envelope."""
        record = self.cloud.ledger.tables["tasks"][envelope_id, "record"]
        if int(record["generation"]["N"]) != generation or not self.cloud.mesh.table.sink.persist:
            return
        if "canceled" not in self._ends_of(envelope_id):
            yield f"{envelope_id} was canceled in its pause, and no object holds it"

    def _ends_of(self, envelope_id: str) -> set[str]:
        return {prefix for prefix in END_PREFIXES if f"results/{prefix}/{envelope_id}.json" in self._objects}

    def _is_kept_after_dead_letter(self, envelope_id: str) -> bool:
        """Whether a provisional end holds, and what came of its dead letter did not count (`protocol §11`).

        That is a canceled copy, or the origin of a set that has closed meanwhile.
        """
        prefix = f"results/superseded/{envelope_id}/"
        is_kept = any(key.startswith(prefix) for key in self._objects)
        return is_kept and self.cloud.ledger.ends.claim(envelope_id) is not None

    def _is_dead_lettered(self, envelope_id: str) -> bool:
        return any(
            envelope.id == envelope_id
            for message in self.cloud.ledger.dead_letters
            if (envelope := self._read(message.body))
        )

    def _refused_ends_are_kept(self) -> Iterator[str]:
        """An end that reached x-sink or x-sump and does not count is an object or a failed child, never a log line only."""
        dead = {
            (envelope.id, envelope.phase)
            for letter in self.cloud.ledger.dead_letters
            if (envelope := self._read(letter.body))
        }
        for envelope_id, messages in self.cloud.ledger.accepted.items():
            claim = self.cloud.ledger.ends.claim(envelope_id)
            for envelope, actor in messages:
                is_stale = self.cloud.ledger.ends.is_stale(envelope)
                if actor not in ENDS or envelope.phase not in TERMINAL or (claim is None and not is_stale):
                    continue
                phase = "failed" if actor == "x-sump" else envelope.phase
                holder = (int(claim["generation"]["N"]), claim["phase"]["S"]) if claim is not None else (0, "")
                is_repeated = not is_stale or self.cloud.ledger.ends.last_pause(envelope_id)[0] > envelope.generation
                counts = is_repeated and holder == (envelope.generation, phase)
                # It may have counted before the redrive. A lost payload makes the envelope a parse error.
                is_excused = holder[0] > envelope.generation or REFERENCE in envelope.headers
                if counts or is_excused or (envelope_id, envelope.phase) in dead:
                    continue
                if not self._is_kept(envelope, phase):
                    yield f"the refused end of {envelope_id} ({envelope.phase}) at {actor} is not kept"

    def _is_kept(self, envelope: ObservedEnvelope, phase: str) -> bool:
        hop = f"{envelope.generation}/{len(envelope.prev)}-{phase}-"
        if any(key.startswith(f"results/superseded/{envelope.id}/{hop}") for key in self._objects):
            return True
        # The end of a task that was canceled meanwhile is its canceled object (`protocol §11`, canceled).
        canceled = self._objects.get(f"results/canceled/{envelope.id}.json")
        kept = self._read(canceled.decode()) if canceled is not None else None
        if kept is not None and (kept.prev, kept.trail) == (envelope.prev, envelope.trail):
            return True
        child = ids.child_id(envelope.id, envelope.generation, len(envelope.prev), "error")
        return f"results/sump/{child}.json" in self._objects or self._is_dead_lettered(child)

    def _dead_letters_have_a_cause(self) -> Iterator[str]:
        """Without service faults, only messages that crash their process become dead letters, not their batch."""
        profile = self.cloud.simulation.faults.profile
        if profile.until > 0:
            return
        for message in self.cloud.ledger.dead_letters:
            # Two crashing messages in a batch may keep a third from being processed.
            if not self._is_poison(message) and len(self.cloud.ledger.crash_causes[message.message_id]) < 2:
                yield f"message {message.message_id} is a dead letter of {message.queue} without a cause"

    def _timeouts_name_the_outage(self) -> Iterator[str]:
        """If nothing but an outage kept messages on their queues, an envelope that missed its deadline there says so."""
        profile = self.cloud.simulation.faults.profile
        if profile.service_off is None or profile.until > 0 or profile.kills_processes:
            return
        for envelope_id in self.cloud.ledger.kept:
            record = self.cloud.ledger.tables["tasks"].get((envelope_id, "record"), {})
            error = record.get("error", {}).get("S", "")
            is_late = record.get("reason", {}).get("S") in ("Timeout", "FanInTimeout") and "Deadline" in error
            if is_late and " did not answer " not in error and " refused calls " not in error:
                yield f"{envelope_id} missed its deadline in an outage, and its error does not say so: {error}"

    def _is_poison(self, message: Message) -> bool:
        envelope, actor = self._read(message.body), self.cloud.ledger.actor_of(message.queue)
        program = self.cloud.mesh.programs.get(actor)
        plan = program.plan(envelope.trail) if program and envelope and envelope.trail else None
        return plan is not None and plan.behavior == "poison"

    def _latest_envelopes(self) -> Iterator[tuple[str, ObservedEnvelope]]:
        for envelope_id, messages in self.cloud.ledger.accepted.items():
            yield envelope_id, messages[-1][0]

    def _ended_once(self, envelope_id: str, envelope: ObservedEnvelope) -> Iterator[str]:
        """The end claim, the objects and the record hold the same terminal status."""
        ends = self._ends_of(envelope_id)
        if len(ends - {"sump", "paused"}) > 1:
            yield f"envelope {envelope_id} ended as {', '.join(sorted(ends))}"
        claim = self.cloud.ledger.ends.claim(envelope_id)
        claimed = claim["phase"]["S"] if claim else None
        if claimed and not ends - {"sump", "paused"} <= {claimed}:
            yield f"envelope {envelope_id} is claimed as {claimed}, but its objects are in {', '.join(sorted(ends))}"
        record = self.cloud.ledger.tables["tasks"].get((envelope_id, "record"))
        status = record["status"]["S"] if record else None
        if envelope.is_stealth:
            if record is not None:
                yield f"the stealth envelope {envelope_id} has a record"
            return
        if record is not None and "result" in record and "result_uri" in record and status == claimed == "succeeded":
            stored = self._objects.get(f"results/succeeded/{envelope_id}.json")
            if stored is not None and json.loads(stored)["payload"] != json.loads(record["result"]["S"]):
                yield f"the record of {envelope_id} has another result than its object"
        said = self.cloud.ledger.said.get((envelope_id, int(record["generation"]["N"]))) if record is not None else None
        # A provisional end gives way, and so does the pause that comes after it.
        if said in ("canceled", "succeeded") and status != said:
            yield f"a cancellation of {envelope_id} was answered as {said}, but its record is {status}"
        if not self._has_ended(envelope_id):
            return
        if status is None and self._was_sent_to_the_end(envelope_id):
            return
        if self.cloud.ledger.pauses.is_paused(envelope_id) and (
            not ends - {"paused"} or self._paused_after_its_end(envelope_id)
        ):
            return
        if status not in TERMINAL:
            end = ", ".join(sorted(ends)) or "dead letter or stored slice"
            yield f"envelope {envelope_id} has ended ({end}), but its record is {status or 'missing'}"
        elif (
            claimed
            and claimed != status
            # Of two provisional ends the first stays in the record: the deadline's, before that of a dead letter.
            and not (_is_provisional(claim) and _is_provisional(record))
        ):
            yield f"envelope {envelope_id} is claimed as {claimed}, but its record is {status}"

    def _paused_after_its_end(self, envelope_id: str) -> bool:
        """Whether a rerun of an ended envelope waits in a pause: its objects are those of the generation before."""
        claim = self.cloud.ledger.ends.claim(envelope_id)
        return claim is not None and int(claim["generation"]["N"]) < self.cloud.ledger.ends.last_pause(envelope_id)[0]

    def _was_sent_to_the_end(self, envelope_id: str) -> bool:
        """Whether the envelope went to end actors only, such as a canceled one."""
        return all(actor in ("x-sink", "x-sump") for _, actor in self.cloud.ledger.accepted[envelope_id])

    @property
    def _objects(self) -> dict[str, bytes]:
        return self.cloud.bucket.objects

    def _read(self, body: str) -> ObservedEnvelope | None:
        return read_envelope(body, self._objects)


def _is_provisional(item: Item | None) -> bool:
    return item is not None and item.get("provisional") == {"BOOL": True}
