"""A message may be acked only when everything that it causes has been accepted."""

import json
from dataclasses import dataclass

from tests.simulation.ledger import SYSTEM_QUEUES, TERMINAL, Ledger, expected_id, frames_key, place_of, steady
from tests.simulation.process import Work
from tests.simulation.programs import HandlerCall, is_slice
from tests.simulation.queues import Message
from tests.simulation.seen import Seen
from tests.simulation.sets import slice_of, told_set


@dataclass
class AckChecks:
    """Looks at every message that is deleted."""

    ledger: Ledger

    def deleted(self, message: Message, work: Work | None) -> None:
        """A message is gone for good: what it was to cause must have been accepted."""
        if work is None:
            return
        seen = self.ledger.read(message)
        match work.actor:
            case system if system in SYSTEM_QUEUES:
                if self.ledger.is_calm and message.receives > 1:
                    self.ledger.violated(
                        f"in calm weather {system} needed {message.receives} receives for {message.body}"
                    )
            case "x-sink":
                if seen is not None and message.message_id not in work.unreadable:
                    self._check_sunk(message, seen, work)
            case "x-sump":
                self._check_sumped(message, seen)
            case actor if self.ledger.mesh.actors[actor].kind == "fan_in":
                self._check_stored(message, seen, work)
            case actor if self.ledger.mesh.actors[actor].kind == "spark":
                self._check_admitted(message, seen, work)
            case actor:
                self._check_worked_on(message, seen, actor, work)

    def _check_stored(self, message: Message, seen: Seen | None, work: Work) -> None:
        """A slice is stored, and its own task reported as done, before its message is acked."""
        if seen is None or told_set(message.body) is not None:
            return
        if not self.ledger.sets.is_stored(seen):
            if not work.caused.get(message.message_id):
                self.ledger.violated(f"{work.actor} acked {seen.id} and neither stored it nor sent it anywhere")
            return
        header = slice_of(seen)
        if header is not None and header["slice_index"] > 0:
            self.ledger.stored.add(seen.id)
            # Whoever claimed another end reports that one, and keeps its own message until then.
            is_ours = not self._ended_otherwise(seen, "succeeded")
            if is_ours and not seen.is_stealth and not work.caused.get(message.message_id):
                self._check_reported(seen, work.actor)

    def _check_admitted(self, message: Message, seen: Seen | None, work: Work) -> None:
        """What is acked by a heavy actor is pending, unless it was sent elsewhere."""
        if work.caused.get(message.message_id) or (seen is not None and self.ledger.runs.is_pending(seen)):
            return
        self.ledger.violated(f"{work.actor} acked {seen.id if seen else message.message_id}, and it is not pending")

    def _check_worked_on(self, message: Message, seen: Seen | None, actor: str, work: Work) -> None:
        if seen is not None and self._is_marked(seen, work):
            return
        if not work.caused.get(message.message_id):
            self.ledger.violated(
                f"{actor} acked message {message.message_id} ({seen.id if seen else '?'}) and it caused nothing"
            )
        if seen is None or seen.trail is None:
            return
        if sum(self.ledger.read(one) == seen for one in work.messages) > 1:
            return  # which of the equal messages was acked, and which was kept, only the function knows
        for call in self.ledger.calls[actor, seen.trail]:
            if call.began >= work.began and call.process.work is work:
                self._check_frames(call, actor, seen)

    def _check_frames(self, call: HandlerCall, actor: str, seen: Seen) -> None:
        """Every frame that a handler gave before its message was acked is on its way."""
        if slice_of(seen) is not None and call.ended != "well":
            return  # what a slice's actor gives leaves as a whole
        if slice_of(seen) is not None and len(call.given) > 1 and not any(is_slice(one.trail) for one in call.given):
            return  # a slice has room for one result
        is_split = any(is_slice(one.trail) for one in call.given)
        if (is_split or self.ledger.mesh.actors[actor].frames == "buffered") and (
            call.ended != "well" or not self._are_kept(call, seen)
        ):
            return
        for given in call.given:
            ahead = seen.next if given.next is None else given.next
            if ahead and (ahead[0] not in self.ledger.mesh.actors or ahead[0].startswith("x-")):
                return  # nothing leaves from here on: the hop ends in a mismatch
            # Of frames that are different each time those count that were kept first.
            if steady(given.trail) not in self.ledger.accepted_trails:
                self.ledger.violated(f"{actor} acked a message whose frame {given.trail} was not accepted anywhere")

    def _are_kept(self, call: HandlerCall, seen: Seen) -> bool:
        """Whether a buffered hop's frames, which count for all its runs, are those of this call or of one like it."""
        kept = self.ledger.objects.get(frames_key(seen), b"[]")
        trails = [steady(tuple(frame["payload"]["trail"])) for frame in json.loads(kept) if frame.get("payload")]
        return set(trails) == {steady(given.trail) for given in call.given}

    def _is_marked(self, seen: Seen, work: Work) -> bool:
        if not self.ledger.mesh.actors[work.actor].deduplicate:
            return False
        return place_of(seen) in self.ledger.tables["hops"]

    def _check_sunk(self, message: Message, seen: Seen, work: Work) -> None:
        phase = seen.phase if seen.phase in (*TERMINAL, "paused") else "succeeded"
        claim = self.ledger.tables["sink"].get((seen.id, "claim"))
        if phase in TERMINAL:
            if claim is None:
                self.ledger.violated(f"x-sink acked {seen.id} ({phase}) without a claim")
                return
            if (claim["phase"]["S"], int(claim["generation"]["N"])) != (phase, seen.generation):
                return  # it had ended otherwise, or later, already
        is_hook_copy = "x-asya-hook" in seen.headers
        if self.ledger.mesh.sink.persist and not is_hook_copy and not self._object_of(seen.id, phase):
            self.ledger.violated(f"x-sink acked {seen.id} ({phase}) and there is no object")
        if phase in ("succeeded", "failed") and not seen.is_stealth:
            self._check_reported(seen, "x-sink")
        header = slice_of(seen)
        if header is not None and phase in TERMINAL and (header["set_id"], header["slice_index"]) not in work.told:
            self.ledger.violated(f"x-sink acked {seen.id} ({phase}), a slice, and did not tell its set")
        if phase == "failed" and not work.caused.get(message.message_id):
            self.ledger.violated(f"x-sink acked {seen.id} (failed) and did not pass it on")

    def _check_sumped(self, message: Message, seen: Seen | None) -> None:
        if seen is None or f"results/sump/unreadable/{message.message_id}" in self.ledger.objects:
            kept = (f"results/sump/unreadable/{message.message_id}", self._key("sump", expected_id(message)))
            if not any(key in self.ledger.objects for key in kept):
                self.ledger.violated(f"x-sump acked the unreadable message {message.message_id} without keeping it")
            return
        if self._key("sump", seen.id) not in self.ledger.objects:
            self.ledger.violated(f"x-sump acked {seen.id} and there is no object")
        if self._ended_otherwise(seen, "failed"):
            return  # whoever claimed that end reports it
        if not seen.is_stealth:
            self._check_reported(seen, "x-sump")

    def _ended_otherwise(self, seen: Seen, phase: str) -> bool:
        """Whether another end, or a later generation's, is claimed."""
        claim = self.ledger.tables["sink"].get((seen.id, "claim"))
        return claim is not None and (claim["phase"]["S"], int(claim["generation"]["N"])) != (phase, seen.generation)

    def _check_reported(self, seen: Seen, actor: str) -> None:
        """Must-arrive: the record is terminal before the message is acked."""
        record = self.ledger.tables["tasks"].get((seen.id, "record"))
        if record is not None and int(record["generation"]["N"]) > seen.generation:
            return  # it was redriven meanwhile: what an older generation comes to is not reported any more
        if record is None or record["status"]["S"] not in TERMINAL:
            status = record["status"]["S"] if record else "missing"
            self.ledger.violated(f"{actor} acked {seen.id} and its record is {status}")

    def _object_of(self, envelope_id: str, phase: str) -> bytes | None:
        return self.ledger.objects.get(self._key(phase, envelope_id))

    @staticmethod
    def _key(prefix: str, envelope_id: str) -> str:
        return f"results/{prefix}/{envelope_id}.json"
