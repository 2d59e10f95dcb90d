"""What a function sends must follow from what it was given."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.protocol import ids, names
from tests.simulation.heavy.run_registry import AttemptKey
from tests.simulation.ledger import SYSTEM_QUEUES, Ledger, frames_key, stable_trail
from tests.simulation.observed_envelope import ObservedEnvelope
from tests.simulation.process import Invocation, Process
from tests.simulation.programs import is_slice
from tests.simulation.queues import Message
from tests.simulation.sets import read_set_message, slice_of
from tests.simulation.transitions import Transition


def shortest(complaints: list[list[str]]) -> list[str]:
    """Of several attempts to explain something the one with the fewest complaints."""
    return min(complaints, key=len)


@dataclass
class SendChecks:
    """Looks at every message that a queue takes."""

    ledger: Ledger

    def accepted(self, message: Message, sender: Process | None) -> None:
        """A queue has taken a message."""
        actor = self.ledger.actor_of(message.queue)
        if actor in SYSTEM_QUEUES:
            self._check_system_message(message, actor, sender)
            return
        envelope = self.ledger.read(message)
        invocation = sender.invocation if sender is not None else None
        set_message = read_set_message(message.body)
        self._log(message, envelope, actor, set_message)
        if set_message is not None:
            self._check_set_message(set_message, actor, invocation)
            return
        if envelope is None:
            self.ledger.unreadable[ids.id_of_message(message.message_id)] = message
            if invocation is not None:
                self.ledger.report_violation(
                    f"{invocation.actor} sent to {actor} what is no envelope: {message.body[:200]}"
                )
            return
        self.ledger.accepted[envelope.id].append((envelope, actor))
        self.ledger.messages_of[envelope.id].add(message.message_id)
        self.ledger.sets.note(envelope, actor)
        self._note_trail(envelope)
        if len(envelope.prev) > self.ledger.mesh.max_hops:
            self.ledger.report_violation(
                f"{envelope.id} has done {len(envelope.prev)} hops; {self.ledger.mesh.max_hops} are allowed"
            )
        if (
            invocation is not None
            and sender is not None
            and not self._check_left_set(invocation, envelope, actor, message.body)
        ):
            self._check_cause(invocation, envelope, actor, sender)

    def _check_system_message(self, message: Message, actor: str, sender: Process | None) -> None:
        """A request to the dispatcher, or an event for the completion."""
        simulation = self.ledger.simulation
        simulation.log.note(
            simulation.scheduler.seconds, "message", f"{message.message_id[:8]} for {actor}: {message.body}"
        )
        is_reconciler = (
            sender is not None and sender.invocation is not None and sender.invocation.actor == names.RECONCILE
        )
        # Whatever else is on the queue, or just being worked on, is what the reconciler takes for missing.
        if is_reconciler and self.ledger.is_calm and self.ledger.waiting_on(message.queue) == 1:
            self.ledger.report_violation(f"in calm weather the reconciler had to send {message.body} to {actor}")

    def _log(
        self, message: Message, envelope: ObservedEnvelope | None, actor: str, set_message: tuple[str, str, int] | None
    ) -> None:
        what = f"{message.message_id[:8]} for {actor}: "
        if set_message is not None:
            what += f"{set_message[0]} {set_message[1]} {set_message[2]}"
        elif envelope is None:
            what += message.body[:100]
        else:
            header = slice_of(envelope)
            of_set = f" slice {header['slice_index']} of {header['set_id']}" if header else ""
            route = f"{'>'.join(envelope.prev)}[{envelope.curr}]{'>'.join(envelope.next)}"
            what += f"{envelope.id} {envelope.phase} {envelope.status.get('reason') or ''} {envelope.attempt} {route}{of_set}"
        self.ledger.simulation.log.note(self.ledger.simulation.scheduler.seconds, "message", what)

    def _check_set_message(self, set_message: tuple[str, str, int], to: str, invocation: Invocation | None) -> None:
        """A message about a set: ends of slices are told by those who end them, looks at the clock by the actor itself."""
        if self.ledger.mesh.actors[to].kind != "fan_in":
            self.ledger.report_violation(f"{to} was told of a set and puts none together")
        if invocation is not None:
            invocation.told.add(set_message[1:])
            if set_message[0] == "set-due" and invocation.actor not in (to, "x-fan-in-sweep"):
                self.ledger.report_violation(f"{invocation.actor} sent {to} a look at the clock")
            if set_message[0] == "slice-ended" and invocation.actor not in ("x-sink", "x-sump", "x-dlq"):
                self.ledger.report_violation(f"{invocation.actor} told {to} of the end of a slice")

    def _check_left_set(self, invocation: Invocation, envelope: ObservedEnvelope, to: str, body: str) -> bool:
        """Whether an envelope that a fan-in actor sent left a set; then it has been checked as such."""
        if (
            invocation.actor not in self.ledger.mesh.actors
            or self.ledger.mesh.actors[invocation.actor].kind != "fan_in"
        ):
            return False
        complaints = [
            list(self.ledger.sets.leaving(one, envelope, to, body))
            for one in self.ledger.sets.origin_of(envelope, invocation.actor)
        ]
        if not complaints:
            return False
        self._check_set_timeout(envelope, invocation)
        for message in invocation.messages:
            invocation.caused[message.message_id] = invocation.caused.get(message.message_id, 0) + 1
        if [] not in complaints:
            self.ledger.report_violation(
                f"{invocation.actor} sent {envelope.id} to {to}: {'; '.join(shortest(complaints))}"
            )
        return True

    def _check_set_timeout(self, envelope: ObservedEnvelope, invocation: Invocation) -> None:
        """In calm weather no set keeps its origin for much longer than its timeout."""
        sets, simulation = self.ledger.tables["fan-in"], self.ledger.simulation
        dues = [
            datetime.fromisoformat(sets[one, "set"]["due_at"]["S"])
            for one in self.ledger.sets.origin_of(envelope, invocation.actor)
            if (one, "set") in sets
        ]
        late = simulation.scheduler.now - timedelta(minutes=5)
        if dues and simulation.faults.weather.is_calm and max(dues) < late:
            self.ledger.report_violation(
                f"{envelope.id} left its set at {simulation.scheduler.now}; it was due at {max(dues)}"
            )

    def _note_trail(self, envelope: ObservedEnvelope) -> None:
        """One frame, one id: whoever runs a hop again gives its frames the ids they had."""
        trail = envelope.trail
        if trail:
            self.ledger.accepted_trails.add(stable_trail(trail))
        if not trail or envelope.headers.get("x-asya-hook") or envelope.phase == "failed":
            return
        known = self.ledger.ids_of_trails.setdefault(trail, envelope.id)
        # In another generation the same frame is another child.
        if known != envelope.id and not self.ledger.has_redrives:
            self.ledger.report_violation(f"the frame {trail} has had the id {known} and now has {envelope.id}")

    def _check_cause(self, invocation: Invocation, envelope: ObservedEnvelope, to: str, sender: Process) -> None:
        """A function sent something: one of the messages it was given must explain it."""
        complaints: list[list[str]] = []
        is_explained = False
        if invocation.actor in SYSTEM_QUEUES:
            self._check_left_run(invocation, envelope, to, sender)
            return
        for message in invocation.messages:
            before = self.ledger.read(message)
            if before is None:
                if envelope.status.get("reason") == "ParseError" and to == "x-sump":
                    invocation.unreadable.add(message.message_id)
                    invocation.caused[message.message_id] = invocation.caused.get(message.message_id, 0) + 1
                    is_explained = True
                continue
            if before.id not in (envelope.id, envelope.parent_id):
                continue
            frame = self.ledger.frames.get(envelope.trail) if envelope.trail is not None else None
            transition = Transition(
                self.ledger.mesh,
                before,
                envelope,
                invocation.actor,
                to,
                frame,
                self._has_frames_of_another_run(before, invocation),
            )
            found = list(transition.problems())
            if not found:
                invocation.caused[message.message_id] = invocation.caused.get(message.message_id, 0) + 1
                # A complaint about what could not be read may be too large itself, and then says only that.
                if envelope.status.get("reason") == "ParseError" or envelope.curr == "x-sump":
                    invocation.unreadable.add(message.message_id)
                elif not transition.is_postponed:
                    self._check_registered(before, invocation)
                self._check_left_once(message, before, envelope, invocation)
                self._check_saved_frames(before, envelope, invocation)
                is_explained = True
            complaints.append(found)
        if is_explained:
            return
        if not complaints:
            self.ledger.report_violation(f"{sender.name} sent {envelope.id} to {to}, and was given nothing of the kind")
            return
        self.ledger.report_violation(f"{sender.name} sent {envelope.id} to {to}: {'; '.join(shortest(complaints))}")

    def _check_left_run(self, invocation: Invocation, envelope: ObservedEnvelope, to: str, sender: Process) -> None:
        """The dispatcher or the completion sent something: an envelope that was pending must explain it."""
        frame = self.ledger.frames.get(envelope.trail) if envelope.trail is not None else None
        complaints: list[list[str]] = []
        explained: list[tuple[AttemptKey, ObservedEnvelope]] = []
        for place, before, actor in self.ledger.runs.of(envelope):
            found = list(Transition(self.ledger.mesh, before, envelope, actor, to, frame).problems())
            complaints.append(found)
            if not found:
                explained.append((place, before))
        if explained:
            self.ledger.runs.note_sent(explained, envelope)
        else:
            why = "; ".join(shortest(complaints)) if complaints else "nothing of the kind was pending"
            self.ledger.report_violation(f"{sender.name} sent {envelope.id} to {to}: {why}")

    def _check_saved_frames(self, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: Invocation) -> None:
        """The frames of a buffered hop, and slices, leave only as they were kept first: each run sends the same."""
        if envelope.trail is None or envelope.prev != (*before.prev, before.curr) or envelope.trail == before.trail:
            return
        if self.ledger.mesh.actors[invocation.actor].frames != "buffered" and not is_slice(envelope.trail):
            return
        kept = self.ledger.objects.get(frames_key(before), b"[]")
        trails = [frame["payload"]["trail"] for frame in json.loads(kept) if frame.get("payload")]
        if list(envelope.trail) not in trails:
            self.ledger.report_violation(
                f"{invocation.actor} sent the frame {envelope.trail}, and those that were kept are {trails}"
            )

    def _check_left_once(
        self, message: Message, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: Invocation
    ) -> None:
        """An envelope leaves a hop once: nothing is retried or ended after frame 0 is on its way."""
        if envelope.id != before.id or sum(one.message_id == message.message_id for one in invocation.messages) > 1:
            return
        if sum(other is not None and other.id == before.id for other in self._read_all(invocation)) > 1:
            return
        what = f"{envelope.phase} {envelope.prev} {envelope.curr} {envelope.attempt}"
        if invocation.left.setdefault(message.message_id, what) != what:
            self.ledger.report_violation(
                f"{before.id} left {invocation.actor} as {invocation.left[message.message_id]}, and then as {what}"
            )

    def _read_all(self, invocation: Invocation) -> list[ObservedEnvelope | None]:
        return [self.ledger.read(message) for message in invocation.messages]

    def _has_frames_of_another_run(self, before: ObservedEnvelope, invocation: Invocation) -> bool:
        """Whether a buffered hop has frames that were kept from a payload that another run of an earlier hop gave."""
        kept = self.ledger.objects.get(frames_key(before))
        if kept is None or before.trail is None:
            return False
        frames = [frame["payload"] for frame in json.loads(kept) if frame.get("payload")]
        return any(tuple(payload["trail"])[:-1] != before.trail for payload in frames)

    def _check_registered(self, before: ObservedEnvelope, invocation: Invocation) -> None:
        """What came without a status is made known before anything it causes leaves."""
        if before.status or before.is_stealth or invocation.actor in ("x-sink", "x-sump"):
            return
        if (before.id, "record") not in self.ledger.tables["tasks"]:
            self.ledger.report_violation(f"{before.id} caused something before its task was known")
