"""Checks sent messages: each follows from a received message."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.protocol import ids, names
from asya.protocol.mesh_table import Actor
from asya.testing.services.process import Process
from asya.testing.services.queues import Message
from tests.simulation.checks.ledger import SYSTEM_QUEUES, Ledger, frames_key, kept_frames, stable_trail
from tests.simulation.checks.observed_envelope import REFERENCE, ObservedEnvelope, read_envelope
from tests.simulation.checks.report_queues import REPORT_QUEUES
from tests.simulation.checks.sets import read_set_message, slice_of
from tests.simulation.checks.transitions import Transition
from tests.simulation.heavy.run_registry import AttemptKey
from tests.simulation.inputs.programs import is_slice
from tests.simulation.invocation import ObservedInvocation


def fewest_problems(explanations: list[list[str]]) -> list[str]:
    """Return the explanation with the fewest problems."""
    return min(explanations, key=len)


@dataclass
class SendChecks:
    """Checks each accepted message."""

    ledger: Ledger

    def accepted(self, message: Message, sender: Process | None) -> None:
        """Check a message that a queue accepted."""
        actor = self.ledger.actor_of(message.queue)
        if actor in REPORT_QUEUES:
            self.ledger.reports.accepted(message, actor)
            for report in json.loads(message.body):
                for problem in self.ledger.ends.report_problems(report) if isinstance(report, dict) else ():
                    self.ledger.report_violation(problem)
            return
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
                    f"{invocation.actor} sent a message to {actor} that is not an envelope: {message.body[:200]}"
                )
            return
        self.ledger.accepted[envelope.id].append((envelope, actor))
        self.ledger.messages_of[envelope.id].add(message.message_id)
        self.ledger.sets.record(envelope, actor)
        if actor == "x-resume":
            for problem in self.ledger.pauses.sent_to_resume(envelope):
                self.ledger.report_violation(problem)
        self._record_trail(envelope)
        if len(envelope.prev) > self.ledger.mesh.max_hops:
            self.ledger.report_violation(
                f"{envelope.id} has made {len(envelope.prev)} hops; max_hops is {self.ledger.mesh.max_hops}"
            )
        if (
            invocation is not None
            and sender is not None
            and not self._check_left_set(invocation, envelope, actor, message.body)
        ):
            self._check_cause(invocation, envelope, actor, sender)

    def killed(self, messages: list[Message], trail: str) -> None:
        """Check how many processes a message has killed: at most one for each of its starts, if there is one copy of it."""
        if self.ledger.simulation.faults.profile.duplicates:
            return
        for message in messages:
            envelope = self.ledger.read(message)
            spec = self.ledger.mesh.actors[self.ledger.actor_of(message.queue)]
            if envelope is None or envelope.trail is None or "/".join(envelope.trail) != trail:
                continue
            self.ledger.deaths[message.message_id] += 1
            if self.ledger.deaths[message.message_id] > spec.max_receives:
                self.ledger.report_violation(f"message {message.message_id} killed more processes than it has starts")

    def given_up(self, message: Message, invocation: ObservedInvocation | None) -> None:
        """Check a message that a function has put into the dead-letter queue of its own queue: it has had its starts."""
        if invocation is None:
            return
        actor, envelope = self.ledger.actor_of(message.queue), self.ledger.read(message)
        if actor != invocation.actor:
            self.ledger.report_violation(f"{invocation.actor} gave up a message of {actor}")
        spec = self.ledger.mesh.actors.get(actor)
        starts = spec.max_receives if spec is not None else Actor(kind="crew").max_receives
        for received in invocation.messages:
            own = self.ledger.read(received)
            if received.body != message.body and (own is None or envelope is None or own.id != envelope.id):
                continue
            invocation.effects[received.message_id] = invocation.effects.get(received.message_id, 0) + 1
            # Copies of a message share its id, and so its starts.
            receives = self.ledger.receives[received.message_id]
            if receives <= starts:
                self.ledger.report_violation(f"{actor} gave up {message.body[:80]} after {receives} receives")
            if received.message_id not in self.ledger.died_with:
                self.ledger.report_violation(f"{actor} gave up {message.body[:80]}, but no process has died with it")

    def _check_system_message(self, message: Message, actor: str, sender: Process | None) -> None:
        """Check a request to the dispatcher or an event for the completion."""
        simulation = self.ledger.simulation
        simulation.log.note(
            simulation.scheduler.seconds, "message", f"{message.message_id[:8]} for {actor}: {message.body}"
        )
        invocation = sender.invocation if sender is not None else None
        if invocation is None or invocation.actor != names.RECONCILE or not self.ledger.is_fault_free:
            return
        # The reconciler may repeat a message that was on the queue or in flight during its sweep, and it ends a drain.
        was_in_flight = (
            self.ledger.message_count(message.queue) > 1
            or self.ledger.acked_at.get(message.queue, -1.0) >= invocation.began
        )
        if not was_in_flight and not self.ledger.runs.was_drained:
            self.ledger.report_violation(f"without faults the reconciler had to send {message.body} to {actor}")

    def _log(
        self, message: Message, envelope: ObservedEnvelope | None, actor: str, set_message: tuple[str, str, int] | None
    ) -> None:
        text = f"{message.message_id[:8]} for {actor}: "
        if set_message is not None:
            text += f"{set_message[0]} {set_message[1]} {set_message[2]}"
        elif envelope is None:
            text += message.body[:100]
        else:
            header = slice_of(envelope)
            slice_text = f" slice {header['slice_index']} of {header['set_id']}" if header else ""
            route = f"{'>'.join(envelope.prev)}[{envelope.curr}]{'>'.join(envelope.next)}"
            status = f"{envelope.phase} {envelope.status.get('reason') or ''} {envelope.attempt}"
            text += f"{envelope.id} {status} {route}{slice_text}"
        self.ledger.simulation.log.note(self.ledger.simulation.scheduler.seconds, "message", text)

    def _check_set_message(
        self, set_message: tuple[str, str, int], to: str, invocation: ObservedInvocation | None
    ) -> None:
        """Check the senders of `slice-ended` and `set-due` messages."""
        if self.ledger.mesh.actors[to].kind != "fan_in":
            self.ledger.report_violation(f"{to} received a message about a set, but it is not a fan-in actor")
        if invocation is not None:
            invocation.ended_slices.add(set_message[1:])
            if set_message[0] == "set-due" and invocation.actor not in (to, "x-fan-in-sweep"):
                self.ledger.report_violation(f"{invocation.actor} sent a set-due message to {to}")
            is_end = invocation.actor in ("x-sink", "x-sump", "x-dlq") or self._is_user_end(invocation.actor)
            if set_message[0] == "slice-ended" and not is_end:
                self.ledger.report_violation(f"{invocation.actor} sent a slice-ended message to {to}")

    def _check_left_set(self, invocation: ObservedInvocation, envelope: ObservedEnvelope, to: str, body: str) -> bool:
        """Check an envelope that left a set; return False if it left none."""
        if (
            invocation.actor not in self.ledger.mesh.actors
            or self.ledger.mesh.actors[invocation.actor].kind != "fan_in"
        ):
            return False
        explanations = [
            list(self.ledger.sets.leave_problems(set_id, envelope, to, body))
            for set_id in self.ledger.sets.candidates(envelope, invocation.actor)
        ]
        if not explanations:
            return False
        self._check_set_timeout(envelope, invocation)
        for message in invocation.messages:
            invocation.effects[message.message_id] = invocation.effects.get(message.message_id, 0) + 1
        if [] not in explanations:
            self.ledger.report_violation(
                f"{invocation.actor} sent {envelope.id} to {to}: {'; '.join(fewest_problems(explanations))}"
            )
        return True

    def _check_set_timeout(self, envelope: ObservedEnvelope, invocation: ObservedInvocation) -> None:
        """Without faults a set ends within 5 minutes of its timeout."""
        sets, simulation = self.ledger.tables["fan-in"], self.ledger.simulation
        dues = [
            datetime.fromisoformat(sets[set_id, "set"]["due_at"]["S"])
            for set_id in self.ledger.sets.candidates(envelope, invocation.actor)
            if (set_id, "set") in sets
        ]
        late = simulation.scheduler.now - timedelta(minutes=5)
        if dues and simulation.faults.profile.is_fault_free and max(dues) < late:
            self.ledger.report_violation(
                f"{envelope.id} left its set at {simulation.scheduler.now}, but the set was due at {max(dues)}"
            )

    def _record_trail(self, envelope: ObservedEnvelope) -> None:
        """Check that a repeated hop gives its frames the same ids."""
        trail = envelope.trail
        if trail:
            self.ledger.accepted_trails.add(stable_trail(trail))
        if not trail or envelope.headers.get("x-asya-hook") or envelope.phase == "failed":
            return
        # In another generation the frame has another id, also before the redriven dead letter is deleted.
        first_id = self.ledger.ids_of_trails.setdefault((trail, envelope.generation), envelope.id)
        if first_id != envelope.id and not self.ledger.has_redrives:
            self.ledger.report_violation(f"the frame {trail} had the id {first_id} and now has {envelope.id}")

    def _check_cause(
        self, invocation: ObservedInvocation, envelope: ObservedEnvelope, to: str, sender: Process
    ) -> None:
        """Check that one of the received messages explains a sent envelope."""
        explanations: list[list[str]] = []
        is_explained = False
        if invocation.actor == names.PAUSE_SWEEP:
            self._check_released(envelope, to)
            return
        if invocation.actor in SYSTEM_QUEUES:
            self._check_left_run(invocation, envelope, to, sender)
            return
        for message in invocation.messages:
            before = self.ledger.read(message)
            if before is None:
                if envelope.status.get("reason") == "ParseError" and to == "x-sump":
                    invocation.unreadable.add(message.message_id)
                    invocation.effects[message.message_id] = invocation.effects.get(message.message_id, 0) + 1
                    is_explained = True
                continue
            if before.id not in (envelope.id, envelope.parent_id):
                continue
            if to == "x-sink" and self.ledger.pauses.is_kept(before, envelope):
                invocation.effects[message.message_id] = invocation.effects.get(message.message_id, 0) + 1
                is_explained = True
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
                self._is_stored_end(envelope),
            )
            problems = list(transition.problems())
            if invocation.actor == "x-resume":
                problems += self.ledger.pauses.resumed(before, envelope)
            if not transition.is_postponed:
                problems += self._sent_after_pause(before, envelope, invocation)
            problems += self._failed_after_fan_out(before, envelope, invocation)
            if not problems:
                self._check_parent(before, envelope, invocation)
                invocation.effects[message.message_id] = invocation.effects.get(message.message_id, 0) + 1
                # The envelope of a parse error may itself be too large and then carries another error.
                # x-sump claims the failure of an envelope whose payload x-sink could not fetch.
                is_without_payload = to == "x-sump" and REFERENCE in before.headers
                if envelope.status.get("reason") == "ParseError" or envelope.curr == "x-sump" or is_without_payload:
                    invocation.unreadable.add(message.message_id)
                elif not transition.is_postponed:
                    self._note_registration(message, before, invocation)
                self._check_left_once(message, before, envelope, invocation)
                self._check_saved_frames(before, envelope, invocation)
                is_explained = True
            explanations.append(problems)
        if is_explained:
            return
        if not explanations:
            self.ledger.report_violation(
                f"{sender.name} sent {envelope.id} to {to}, but received no message that explains it"
            )
            return
        self.ledger.report_violation(
            f"{sender.name} sent {envelope.id} to {to}: {'; '.join(fewest_problems(explanations))}"
        )

    def _check_parent(
        self, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: ObservedInvocation
    ) -> None:
        """Check that the id of a child stands for the children of one hop alone (`protocol §14.child_ids`)."""
        received = {known.id for message in invocation.messages if (known := self.ledger.read(message)) is not None}
        if envelope.id == before.id or envelope.id in received or invocation.actor in names.END_ACTORS:
            return  # an end sends copies to hooks
        hop = (before.id, before.generation, len(before.prev))
        if self.ledger.children.setdefault(envelope.id, hop) != hop:
            self.ledger.report_violation(f"{envelope.id} is a child of two hops")

    def _is_stored_end(self, envelope: ObservedEnvelope) -> bool:
        """Whether an object holds this failed envelope: x-sink sends on what another run of the same end has stored."""
        body = self.ledger.objects.get(f"results/failed/{envelope.id}.json")
        stored = read_envelope(body.decode(), self.ledger.objects) if body is not None else None
        return stored is not None and (stored.prev, stored.curr, stored.payload, stored.status) == (
            envelope.prev,
            envelope.curr,
            envelope.payload,
            envelope.status,
        )

    def _failed_after_fan_out(
        self, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: ObservedInvocation
    ) -> list[str]:
        """A hop whose slices were saved before sends them again, also if its handler fails this time."""
        saved_at = self.ledger.saved_frames.get(frames_key(before), invocation.began)
        is_postponed = envelope == before  # no handler ran
        is_failure = envelope.id == before.id and envelope.phase in ("failed", "retrying") and not is_postponed
        if not is_failure or saved_at >= invocation.began or invocation.actor in ("x-sink", "x-sump"):
            return []
        error = envelope.status.get("error") or {}
        if error.get("type") in ("RouteMismatch", "EnvelopeTooLarge") or error.get("message", "").startswith(
            "Deadline"
        ):
            return []  # no handler ran, or its frames cannot be sent
        saved = json.loads(kept_frames(self.ledger.objects, before) or b"[]")
        is_fan_out = any(is_slice(tuple(frame["payload"]["trail"])) for frame in saved if frame.get("payload"))
        return [f"{before.id} left as {envelope.phase}, but {frames_key(before)} has its slices"] if is_fan_out else []

    def _check_released(self, envelope: ObservedEnvelope, to: str) -> None:
        """The sweep of pauses sends answered envelopes to x-resume, those of ended tasks to x-sink, and what waited back."""
        if "x-asya-wait" in envelope.headers:
            for problem in self.ledger.waits.release_problems(envelope, to, self.ledger.simulation.scheduler.now):
                self.ledger.report_violation(problem)
            return
        if to != "x-resume" and (to, envelope.phase) not in (("x-sink", "canceled"), ("x-sink", "failed")):
            self.ledger.report_violation(f"the sweep of pauses sent {envelope.id} to {to} as {envelope.phase}")

    def _sent_after_pause(
        self, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: ObservedInvocation
    ) -> list[str]:
        """After a pre-flight, a late copy at or below a pause sends neither frame 0 nor an end of its id."""
        asked_at = self._judged_at(before, invocation)
        if asked_at is None or envelope.id != before.id or before.is_stealth or not before.status:
            return []
        paused_at = self.ledger.pauses.passed_at(before)
        if paused_at is None or paused_at >= asked_at or envelope.phase in ("paused", "canceled"):
            return []
        return [f"a late copy of {before.id} at position {len(before.prev)} left as {envelope.phase} after its pause"]

    def _judged_at(self, before: ObservedEnvelope, invocation: ObservedInvocation) -> float | None:
        """When the states were read that a hop began with (`protocol §5.4.fresh`); None if they were not.

        The frames of a batch leave together: the states may have been read again since, for the messages that came after it.
        """
        calls = self.ledger.calls[invocation.actor, before.trail] if before.trail is not None else ()
        read_at = [
            call.states_read_at
            for call in calls
            if call.began >= invocation.began and call.process.invocation is invocation
        ]
        if not read_at:
            return invocation.states_first_read_at
        return None if None in read_at else min(at for at in read_at if at is not None)

    def _check_left_run(
        self, invocation: ObservedInvocation, envelope: ObservedEnvelope, to: str, sender: Process
    ) -> None:
        """Check that a pending envelope explains one that the dispatcher or the completion sent."""
        frame = self.ledger.frames.get(envelope.trail) if envelope.trail is not None else None
        explanations: list[list[str]] = []
        explained: list[tuple[AttemptKey, ObservedEnvelope]] = []
        for key, before, actor in self.ledger.runs.of(envelope):
            problems = list(Transition(self.ledger.mesh, before, envelope, actor, to, frame).problems())
            explanations.append(problems)
            if not problems:
                explained.append((key, before))
        if explained:
            self.ledger.runs.note_sent(explained, envelope)
        else:
            problem = "; ".join(fewest_problems(explanations)) if explanations else "no pending envelope explains it"
            self.ledger.report_violation(f"{sender.name} sent {envelope.id} to {to}: {problem}")

    def _check_saved_frames(
        self, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: ObservedInvocation
    ) -> None:
        """Check that a buffered hop, or a fan-out into slices, sends only the frames that it saved first."""
        if envelope.trail is None or envelope.prev != (*before.prev, before.curr) or envelope.trail == before.trail:
            return
        if self.ledger.mesh.actors[invocation.actor].frames != "buffered" and not is_slice(envelope.trail):
            return
        saved = kept_frames(self.ledger.objects, before) or b"[]"
        trails = [frame["payload"]["trail"] for frame in json.loads(saved) if frame.get("payload")]
        if list(envelope.trail) not in trails:
            self.ledger.report_violation(
                f"{invocation.actor} sent the frame {envelope.trail}, but the saved frames are {trails}"
            )

    def _check_left_once(
        self, message: Message, before: ObservedEnvelope, envelope: ObservedEnvelope, invocation: ObservedInvocation
    ) -> None:
        """Check that an envelope leaves a hop once; after frame 0 it neither retries nor ends."""
        if envelope.id != before.id or sum(other.message_id == message.message_id for other in invocation.messages) > 1:
            return
        if sum(other is not None and other.id == before.id for other in self._read_all(invocation)) > 1:
            return
        departure = f"{envelope.phase} {envelope.prev} {envelope.curr} {envelope.attempt}"
        if invocation.departures.setdefault(message.message_id, departure) != departure:
            self.ledger.report_violation(
                f"{before.id} left {invocation.actor} as {invocation.departures[message.message_id]}, and then as {departure}"
            )

    def _read_all(self, invocation: ObservedInvocation) -> list[ObservedEnvelope | None]:
        return [self.ledger.read(message) for message in invocation.messages]

    def _has_frames_of_another_run(self, before: ObservedEnvelope, invocation: ObservedInvocation) -> bool:
        """Whether the saved frames come from a payload of another run of an earlier hop."""
        saved = kept_frames(self.ledger.objects, before)
        if saved is None or before.trail is None:
            return False
        frames = [frame["payload"] for frame in json.loads(saved) if frame.get("payload")]
        return any(tuple(payload["trail"])[:-1] != before.trail for payload in frames)

    def _is_user_end(self, actor: str) -> bool:
        return actor in self.ledger.mesh.actors and self.ledger.mesh.actors[actor].kind == "end"

    def _note_registration(self, message: Message, before: ObservedEnvelope, invocation: ObservedInvocation) -> None:
        """Note that a task without a status must be registered before its message is acknowledged."""
        # x-sink reports the end of a task that comes straight to a user's end actor. The gateway of a version without an
        # actor refuses its reports.
        is_excused = self._is_user_end(invocation.actor) or invocation.actor in self.ledger.volatile_actors
        if (
            not before.status
            and not before.is_stealth
            and invocation.actor not in ("x-sink", "x-sump")
            and not is_excused
        ):
            invocation.to_register[message.message_id] = before.id
