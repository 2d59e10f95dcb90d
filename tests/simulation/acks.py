"""A message may be acked only when everything that it causes has been accepted."""

import json
from dataclasses import dataclass

from tests.simulation.ledger import SYSTEM_QUEUES, TERMINAL, Ledger, expected_id, frames_key, hop_key, stable_trail
from tests.simulation.observed_envelope import ObservedEnvelope
from tests.simulation.process import Invocation
from tests.simulation.programs import HandlerCall, is_slice
from tests.simulation.queues import Message
from tests.simulation.sets import read_set_message, slice_of


@dataclass
class AckChecks:
    """Looks at every message that is deleted."""

    ledger: Ledger

    def deleted(self, message: Message, invocation: Invocation | None) -> None:
        """A message is gone for good: what it was to cause must have been accepted."""
        if invocation is None:
            return
        envelope = self.ledger.read(message)
        match invocation.actor:
            case system if system in SYSTEM_QUEUES:
                if self.ledger.is_calm and message.receives > 1:
                    self.ledger.report_violation(
                        f"in calm weather {system} needed {message.receives} receives for {message.body}"
                    )
            case "x-sink":
                if envelope is not None and message.message_id not in invocation.unreadable:
                    self._check_sink(message, envelope, invocation)
            case "x-sump":
                self._check_sump(message, envelope)
            case actor if self.ledger.mesh.actors[actor].kind == "fan_in":
                self._check_slice(message, envelope, invocation)
            case actor if self.ledger.mesh.actors[actor].kind == "spark":
                self._check_heavy(message, envelope, invocation)
            case actor:
                self._check_light(message, envelope, actor, invocation)

    def _check_slice(self, message: Message, envelope: ObservedEnvelope | None, invocation: Invocation) -> None:
        """A slice is stored, and its own task reported as done, before its message is acked."""
        if envelope is None or read_set_message(message.body) is not None:
            return
        if not self.ledger.sets.is_stored(envelope):
            if not invocation.caused.get(message.message_id):
                self.ledger.report_violation(
                    f"{invocation.actor} acked {envelope.id} and neither stored it nor sent it anywhere"
                )
            return
        header = slice_of(envelope)
        if header is not None and header["slice_index"] > 0:
            self.ledger.stored.add(envelope.id)
            # Whoever claimed another end reports that one, and keeps its own message until then.
            is_ours = not self._ended_otherwise(envelope, "succeeded")
            if is_ours and not envelope.is_stealth and not invocation.caused.get(message.message_id):
                self._check_reported(envelope, invocation.actor)

    def _check_heavy(self, message: Message, envelope: ObservedEnvelope | None, invocation: Invocation) -> None:
        """What is acked by a heavy actor is pending, unless it was sent elsewhere."""
        if invocation.caused.get(message.message_id) or (
            envelope is not None and self.ledger.runs.is_pending(envelope)
        ):
            return
        self.ledger.report_violation(
            f"{invocation.actor} acked {envelope.id if envelope else message.message_id}, and it is not pending"
        )

    def _check_light(
        self, message: Message, envelope: ObservedEnvelope | None, actor: str, invocation: Invocation
    ) -> None:
        if envelope is not None and self._is_completed_hop(envelope, invocation):
            return
        if not invocation.caused.get(message.message_id):
            self.ledger.report_violation(
                f"{actor} acked message {message.message_id} ({envelope.id if envelope else '?'}) and it caused nothing"
            )
        if envelope is None or envelope.trail is None:
            return
        if sum(self.ledger.read(one) == envelope for one in invocation.messages) > 1:
            return  # which of the equal messages was acked, and which was kept, only the function knows
        for call in self.ledger.calls[actor, envelope.trail]:
            if call.began >= invocation.began and call.process.invocation is invocation:
                self._check_frames(call, actor, envelope)

    def _check_frames(self, call: HandlerCall, actor: str, envelope: ObservedEnvelope) -> None:
        """Every frame that a handler gave before its message was acked is on its way."""
        if slice_of(envelope) is not None and call.ended != "well":
            return  # what a slice's actor gives leaves as a whole
        if (
            slice_of(envelope) is not None
            and len(call.frames) > 1
            and not any(is_slice(one.trail) for one in call.frames)
        ):
            return  # a slice has room for one result
        is_split = any(is_slice(one.trail) for one in call.frames)
        if (is_split or self.ledger.mesh.actors[actor].frames == "buffered") and (
            call.ended != "well" or not self._are_saved(call, envelope)
        ):
            return
        for frame in call.frames:
            ahead = envelope.next if frame.next is None else frame.next
            if ahead and (ahead[0] not in self.ledger.mesh.actors or ahead[0].startswith("x-")):
                return  # nothing leaves from here on: the hop ends in a mismatch
            # Of frames that are different each time those count that were kept first.
            if stable_trail(frame.trail) not in self.ledger.accepted_trails:
                self.ledger.report_violation(
                    f"{actor} acked a message whose frame {frame.trail} was not accepted anywhere"
                )

    def _are_saved(self, call: HandlerCall, envelope: ObservedEnvelope) -> bool:
        """Whether a buffered hop's frames, which count for all its runs, are those of this call or of one like it."""
        kept = self.ledger.objects.get(frames_key(envelope), b"[]")
        trails = [stable_trail(tuple(frame["payload"]["trail"])) for frame in json.loads(kept) if frame.get("payload")]
        return set(trails) == {stable_trail(frame.trail) for frame in call.frames}

    def _is_completed_hop(self, envelope: ObservedEnvelope, invocation: Invocation) -> bool:
        if not self.ledger.mesh.actors[invocation.actor].deduplicate:
            return False
        return hop_key(envelope) in self.ledger.tables["hops"]

    def _check_sink(self, message: Message, envelope: ObservedEnvelope, invocation: Invocation) -> None:
        phase = envelope.phase if envelope.phase in (*TERMINAL, "paused") else "succeeded"
        claim = self.ledger.tables["sink"].get((envelope.id, "claim"))
        if phase in TERMINAL:
            if claim is None:
                self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}) without a claim")
                return
            if (claim["phase"]["S"], int(claim["generation"]["N"])) != (phase, envelope.generation):
                return  # it had ended otherwise, or later, already
        is_hook_copy = "x-asya-hook" in envelope.headers
        if self.ledger.mesh.sink.persist and not is_hook_copy and not self._object_of(envelope.id, phase):
            self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}) and there is no object")
        if phase in ("succeeded", "failed") and not envelope.is_stealth:
            self._check_reported(envelope, "x-sink")
        header = slice_of(envelope)
        if (
            header is not None
            and phase in TERMINAL
            and (header["set_id"], header["slice_index"]) not in invocation.told
        ):
            self.ledger.report_violation(f"x-sink acked {envelope.id} ({phase}), a slice, and did not tell its set")
        if phase == "failed" and not invocation.caused.get(message.message_id):
            self.ledger.report_violation(f"x-sink acked {envelope.id} (failed) and did not pass it on")

    def _check_sump(self, message: Message, envelope: ObservedEnvelope | None) -> None:
        if envelope is None or f"results/sump/unreadable/{message.message_id}" in self.ledger.objects:
            kept = (f"results/sump/unreadable/{message.message_id}", self._key("sump", expected_id(message)))
            if not any(key in self.ledger.objects for key in kept):
                self.ledger.report_violation(
                    f"x-sump acked the unreadable message {message.message_id} without keeping it"
                )
            return
        if self._key("sump", envelope.id) not in self.ledger.objects:
            self.ledger.report_violation(f"x-sump acked {envelope.id} and there is no object")
        if self._ended_otherwise(envelope, "failed"):
            return  # whoever claimed that end reports it
        if not envelope.is_stealth:
            self._check_reported(envelope, "x-sump")

    def _ended_otherwise(self, envelope: ObservedEnvelope, phase: str) -> bool:
        """Whether another end, or a later generation's, is claimed."""
        claim = self.ledger.tables["sink"].get((envelope.id, "claim"))
        return claim is not None and (claim["phase"]["S"], int(claim["generation"]["N"])) != (
            phase,
            envelope.generation,
        )

    def _check_reported(self, envelope: ObservedEnvelope, actor: str) -> None:
        """Must-arrive: the record is terminal before the message is acked."""
        record = self.ledger.tables["tasks"].get((envelope.id, "record"))
        if record is not None and int(record["generation"]["N"]) > envelope.generation:
            return  # it was redriven meanwhile: what an older generation comes to is not reported any more
        if record is None or record["status"]["S"] not in TERMINAL:
            status = record["status"]["S"] if record else "missing"
            self.ledger.report_violation(f"{actor} acked {envelope.id} and its record is {status}")

    def _object_of(self, envelope_id: str, phase: str) -> bytes | None:
        return self.ledger.objects.get(self._key(phase, envelope_id))

    @staticmethod
    def _key(prefix: str, envelope_id: str) -> str:
        return f"results/{prefix}/{envelope_id}.json"
