"""Checks acknowledgements: a function acknowledges a message only after all its effects are accepted."""

import json
from dataclasses import dataclass

from asya.testing.services.queues import Message
from tests.simulation.checks.ledger import (
    SYSTEM_QUEUES,
    TERMINAL,
    Ledger,
    expected_id,
    hop_key,
    kept_frames,
    stable_trail,
)
from tests.simulation.checks.observed_envelope import ObservedEnvelope, target_of
from tests.simulation.checks.report_queues import REPORT_QUEUES
from tests.simulation.checks.sets import read_set_message, slice_of
from tests.simulation.inputs.programs import HandlerCall, OutputFrame, Trail, is_slice
from tests.simulation.invocation import ObservedInvocation
from tests.simulation.pauses.registry import pause_of_record


@dataclass
class AckChecks:
    """Checks each deleted message."""

    ledger: Ledger

    def deleted(self, message: Message, invocation: ObservedInvocation | None) -> None:
        """Check that the effects of a deleted message were accepted."""
        if self.ledger.actor_of(message.queue) in REPORT_QUEUES:
            for problem in self.ledger.reports.deleted(message):
                self.ledger.report_violation(problem)
            return
        if invocation is None:
            return
        self.ledger.acked_at[message.queue] = self.ledger.simulation.scheduler.seconds
        invocation.acked.add(message.message_id)
        task_id = invocation.to_register.get(message.message_id)
        if task_id is not None and task_id not in self.ledger.reports.registered:
            self.ledger.report_violation(f"{invocation.actor} acked {task_id}, but its task was not registered")
        envelope = self.ledger.read(message)
        if envelope is not None and message.receives > 1:
            self.ledger.kept.add(envelope.id)
        match invocation.actor:
            case system if system in SYSTEM_QUEUES:
                if self.ledger.is_fault_free and message.receives > 1:
                    self.ledger.report_violation(
                        f"without faults {system} needed {message.receives} receives for {message.body}"
                    )
            case "x-sink":
                if envelope is not None and message.message_id not in invocation.unreadable:
                    self.ledger.ends.acknowledged(envelope)
                    self._check_sink(message, envelope, invocation)
            case "x-sump":
                self._check_sump(message, envelope)
            case "x-resume" if envelope is not None and self.ledger.pauses.is_answered(envelope):
                return
            case actor if self.ledger.mesh.actors[actor].kind == "pause":
                self._check_pause(message, envelope, invocation)
            case actor if self.ledger.mesh.actors[actor].kind == "wait" and self._is_held(envelope):
                return
            case actor if self.ledger.mesh.actors[actor].kind == "fan_in":
                self._check_slice(message, envelope, invocation)
            case actor if self.ledger.mesh.actors[actor].kind == "spark":
                self._check_heavy(message, envelope, invocation)
            case actor:
                self._check_light(message, envelope, actor, invocation)

    def _is_held(self, envelope: ObservedEnvelope | None) -> bool:
        """Whether a wait holds an envelope that has not waited yet."""
        is_first = envelope is not None and "x-asya-wait" not in envelope.headers
        return envelope is not None and is_first and self.ledger.waits.has_held(envelope)

    def _check_slice(self, message: Message, envelope: ObservedEnvelope | None, invocation: ObservedInvocation) -> None:
        """A fan-in actor stores a slice, claims its end and reports its task as succeeded before the acknowledgement."""
        if envelope is None or read_set_message(message.body) is not None:
            return
        if not self.ledger.sets.is_stored(envelope):
            if not invocation.effects.get(message.message_id):
                self.ledger.report_violation(f"{invocation.actor} acked {envelope.id} but neither stored nor sent it")
            return
        header = slice_of(envelope)
        if header is not None and header["slice_index"] > 0:
            self.ledger.stored_slices.add(envelope.id)
            # One that is canceled, overdue or beyond max_hops goes to an end actor, which claims its end.
            has_left = any(actor in ("x-sink", "x-sump") for _, actor in self.ledger.accepted[envelope.id])
            if self.ledger.ends.claim(envelope.id) is None and not has_left:
                self.ledger.report_violation(f"{invocation.actor} acked the stored slice {envelope.id} without a claim")
            # The function that claimed another end reports it before it acknowledges its own message.
            is_claimed_here = not self._ended_otherwise(envelope, "succeeded")
            if is_claimed_here and not envelope.is_stealth and not invocation.effects.get(message.message_id):
                self._check_reported(envelope, invocation.actor)

    def _check_pause(self, message: Message, envelope: ObservedEnvelope | None, invocation: ObservedInvocation) -> None:
        """A pause actor stores, reports and announces the pause before the acknowledgement, or sends the envelope elsewhere."""
        if invocation.effects.get(message.message_id):
            return
        pauses, actor = self.ledger.pauses, invocation.actor
        if envelope is None or not pauses.is_handled(envelope):
            self.ledger.report_violation(f"{actor} acked {message.message_id}, but neither stored nor sent it")
            return
        record = self.ledger.tables["tasks"].get((envelope.id, "record"), {})
        pause = pause_of_record(record) if record else None
        is_here = pause is not None and pause[1:] == (envelope.generation, len(envelope.prev))
        is_paused = is_here and record["status"]["S"] == "paused"
        is_last = message.receives >= self.ledger.mesh.actors[actor].max_receives
        if is_paused and not is_last and not pauses.is_notified(envelope):
            self.ledger.report_violation(f"{actor} acked {envelope.id}, but nobody is notified of its pause")

    def _check_heavy(self, message: Message, envelope: ObservedEnvelope | None, invocation: ObservedInvocation) -> None:
        """A heavy actor acknowledges an envelope that is pending, or that it sent elsewhere."""
        if invocation.effects.get(message.message_id) or (
            envelope is not None and self.ledger.runs.is_pending(envelope)
        ):
            return
        self.ledger.report_violation(
            f"{invocation.actor} acked {envelope.id if envelope else message.message_id}, but it is not pending"
        )

    def _check_light(
        self, message: Message, envelope: ObservedEnvelope | None, actor: str, invocation: ObservedInvocation
    ) -> None:
        if envelope is not None and (
            self._is_completed_hop(envelope, invocation) or self.ledger.pauses.has_passed(envelope)
        ):
            return
        if envelope is not None and self._runs_in_batch(envelope, message, invocation):
            return
        if not invocation.effects.get(message.message_id):
            self.ledger.report_violation(
                f"{actor} acked message {message.message_id} ({envelope.id if envelope else '?'}) without any effect"
            )
        if envelope is None or envelope.trail is None:
            return
        if sum(self.ledger.read(other) == envelope for other in invocation.messages) > 1:
            return  # only the function knows which of the equal messages it acknowledged
        calls = [
            call
            for call in self.ledger.calls[actor, envelope.trail]
            if call.began >= invocation.began and call.process.invocation is invocation
        ]
        missing = [frame for call in calls if (frame := self._missing_frame(call, actor, envelope)) is not None]
        for frame in missing[self._kept_copies(envelope.trail, invocation) :]:
            self.ledger.report_violation(f"{actor} acked a message, but no queue accepted its frame {frame.trail}")

    def _kept_copies(self, trail: Trail, invocation: ObservedInvocation) -> int:
        """The messages of a batch with this payload that are not acknowledged: each may have called the handler once.

        Two copies of an envelope that were sent at two times differ in their status. The frames of a copy that stays on the
        queue may be saved and not sent.
        """
        envelopes = {
            message.message_id: self.ledger.read(message)
            for message in invocation.messages
            if message.message_id not in invocation.acked
        }
        return sum(envelope is not None and envelope.trail == trail for envelope in envelopes.values())

    def _missing_frame(self, call: HandlerCall, actor: str, envelope: ObservedEnvelope) -> OutputFrame | None:
        """The first output frame of a call that no queue accepted although the acknowledgement of its message needs it."""
        if self.ledger.mesh.actors[actor].kind == "end":
            return None  # the output of an end actor's handler is ignored
        if slice_of(envelope) is not None and call.outcome != "succeeded":
            return None  # the output of a slice leaves as a whole
        if (
            slice_of(envelope) is not None
            and len(call.frames) > 1
            and not any(is_slice(frame.trail) for frame in call.frames)
        ):
            return None  # a slice has one result only
        is_split = any(is_slice(frame.trail) for frame in call.frames)
        if (is_split or self.ledger.mesh.actors[actor].frames == "buffered") and (
            call.outcome != "succeeded" or not self._are_saved(call, envelope)
        ):
            return None
        for frame in call.frames:
            ahead = envelope.next if frame.next is None else frame.next
            if not self._may_leave([target_of(envelope, logical) for logical in ahead]):
                return None  # the hop ends here with a route mismatch
            # A nondeterministic handler produces other frames in each call; the first saved ones count.
            if stable_trail(frame.trail) not in self.ledger.accepted_trails:
                return frame
        return None

    def _may_leave(self, ahead: list[str]) -> bool:
        """Whether the route leads to an actor with code of users by way of the crew alone (`protocol §1.authority`).

        Behind the crew an actor may be one that only a later deployment has.
        """
        for place, actor in enumerate(ahead):
            if actor in ("x-sink", "x-sump") or (place == 0 and not self._is_target(actor)):
                return False
            if actor not in self.ledger.mesh.actors or not self.ledger.mesh.actors[actor].continues:
                return True
        return True

    def _is_target(self, actor: str) -> bool:
        is_known = actor in self.ledger.mesh.actors and actor not in ("x-sink", "x-sump")
        return is_known and actor not in self.ledger.volatile_actors

    def _are_saved(self, call: HandlerCall, envelope: ObservedEnvelope) -> bool:
        """Whether the saved frames of a buffered hop equal the frames of this call."""
        saved = kept_frames(self.ledger.objects, envelope) or b"[]"
        trails = [stable_trail(tuple(frame["payload"]["trail"])) for frame in json.loads(saved) if frame.get("payload")]
        return set(trails) == {stable_trail(frame.trail) for frame in call.frames}

    def _is_completed_hop(self, envelope: ObservedEnvelope, invocation: ObservedInvocation) -> bool:
        """Whether an actor that deduplicates has completed this attempt, or has another copy of it in its batch."""
        if not self.ledger.mesh.actors[invocation.actor].deduplicate:
            return False
        copies = [other for other in map(self.ledger.read, invocation.messages) if other is not None]
        runs_twice = sum(hop_key(other) == hop_key(envelope) for other in copies) > 1
        return runs_twice or hop_key(envelope) in self.ledger.completed_hops

    def _runs_in_batch(self, envelope: ObservedEnvelope, message: Message, invocation: ObservedInvocation) -> bool:
        """Whether a copy of this message runs in its batch; it stays on the queue if its sends fail."""
        copies = (self.ledger.read(other) == envelope for other in invocation.messages if other is not message)
        return self.ledger.mesh.actors[invocation.actor].deduplicate and any(copies)

    def _check_sink(self, message: Message, envelope: ObservedEnvelope, invocation: ObservedInvocation) -> None:
        phase = envelope.phase if envelope.phase in (*TERMINAL, "paused") else "succeeded"
        claim = self.ledger.ends.claim(envelope.id)
        if phase in TERMINAL:
            if self.ledger.ends.is_stale(envelope):
                return  # the task has paused since; the final checks look for its end
            if claim is None:
                self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}) without a claim")
                return
            if (claim["phase"]["S"], int(claim["generation"]["N"])) != (phase, envelope.generation):
                return  # the task already has another end, or an end of a later generation
        is_hook_copy = "x-asya-hook" in envelope.headers
        if self.ledger.mesh.sink.persist and not is_hook_copy and not self._object_of(envelope.id, phase):
            self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}) without an object")
        if phase in ("succeeded", "failed") and not envelope.is_stealth:
            self._check_reported(envelope, "x-sink")
        header = slice_of(envelope)
        if (
            header is not None
            and phase in TERMINAL
            and (header["set_id"], header["slice_index"]) not in invocation.ended_slices
        ):
            self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}), a slice, without a message to its set")
        if phase == "failed" and not invocation.effects.get(message.message_id):
            self.ledger.report_violation(f"x-sink acked {envelope.id} (failed) without sending it to x-sump")

    def _check_sump(self, message: Message, envelope: ObservedEnvelope | None) -> None:
        if envelope is None or f"results/sump/unreadable/{message.message_id}" in self.ledger.objects:
            keys = (f"results/sump/unreadable/{message.message_id}", self._key("sump", expected_id(message)))
            if not any(key in self.ledger.objects for key in keys):
                self.ledger.report_violation(
                    f"x-sump acked the unreadable message {message.message_id} without an object"
                )
            return
        if self.ledger.ends.is_stale(envelope):
            return  # the task has paused since; the final checks look for its end
        if self.ledger.ends.claim(envelope.id) is None:
            self.ledger.report_violation(f"x-sump acked {envelope.id} without a claim")
        if self._ended_otherwise(envelope, "failed"):
            return  # the function that claimed the other end reports it, and the final checks look for this one
        if self._key("sump", envelope.id) not in self.ledger.objects:
            self.ledger.report_violation(f"x-sump acked {envelope.id} without an object")
        if not envelope.is_stealth:
            self._check_reported(envelope, "x-sump")

    def _ended_otherwise(self, envelope: ObservedEnvelope, phase: str) -> bool:
        """Whether another end, or the end of a later generation, is claimed."""
        claim = self.ledger.ends.claim(envelope.id)
        return claim is not None and (claim["phase"]["S"], int(claim["generation"]["N"])) != (
            phase,
            envelope.generation,
        )

    def _check_reported(self, envelope: ObservedEnvelope, actor: str) -> None:
        """The queue of ends accepts the required report before the acknowledgement; the final checks read the record."""
        record = self.ledger.tables["tasks"].get((envelope.id, "record"))
        if record is not None and int(record["generation"]["N"]) > envelope.generation:
            return  # redriven: functions do not report the end of an earlier generation
        if not any(generation >= envelope.generation for generation in self.ledger.reports.ends[envelope.id]):
            self.ledger.report_violation(f"{actor} acked {envelope.id}, but its end was not reported")

    def _object_of(self, envelope_id: str, phase: str) -> bytes | None:
        return self.ledger.objects.get(self._key(phase, envelope_id))

    @staticmethod
    def _key(prefix: str, envelope_id: str) -> str:
        return f"results/{prefix}/{envelope_id}.json"
