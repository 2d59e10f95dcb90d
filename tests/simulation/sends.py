"""What a function sends must follow from what it was given."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.protocol import ids, names
from tests.simulation.heavy.run_registry import AttemptKey
from tests.simulation.ledger import SYSTEM_QUEUES, Ledger, frames_key, steady
from tests.simulation.process import Process, Work
from tests.simulation.programs import is_slice
from tests.simulation.queues import Message
from tests.simulation.seen import Seen
from tests.simulation.sets import slice_of, told_set
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
            self._of_the_system(message, actor, sender)
            return
        seen = self.ledger.read(message)
        work = sender.work if sender is not None else None
        told = told_set(message.body)
        self._log(message, seen, actor, told)
        if told is not None:
            self._check_told(told, actor, work)
            return
        if seen is None:
            self.ledger.unreadable[ids.id_of_message(message.message_id)] = message
            if work is not None:
                self.ledger.violated(f"{work.actor} sent to {actor} what is no envelope: {message.body[:200]}")
            return
        self.ledger.accepted[seen.id].append((seen, actor))
        self.ledger.messages_of[seen.id].add(message.message_id)
        self.ledger.sets.note(seen, actor)
        self._note_trail(seen)
        if len(seen.prev) > self.ledger.mesh.max_hops:
            self.ledger.violated(f"{seen.id} has done {len(seen.prev)} hops; {self.ledger.mesh.max_hops} are allowed")
        if work is not None and sender is not None and not self._left_a_set(work, seen, actor, message.body):
            self._caused(work, seen, actor, sender)

    def _of_the_system(self, message: Message, actor: str, sender: Process | None) -> None:
        """A request to the dispatcher, or an event for the completion."""
        nature = self.ledger.nature
        nature.log.note(nature.scheduler.seconds, "message", f"{message.message_id[:8]} for {actor}: {message.body}")
        is_reconciler = sender is not None and sender.work is not None and sender.work.actor == names.RECONCILE
        # Whatever else is on the queue, or just being worked on, is what the reconciler takes for missing.
        if is_reconciler and self.ledger.is_calm and self.ledger.waiting_on(message.queue) == 1:
            self.ledger.violated(f"in calm weather the reconciler had to send {message.body} to {actor}")

    def _log(self, message: Message, seen: Seen | None, actor: str, told: tuple[str, str, int] | None) -> None:
        what = f"{message.message_id[:8]} for {actor}: "
        if told is not None:
            what += f"{told[0]} {told[1]} {told[2]}"
        elif seen is None:
            what += message.body[:100]
        else:
            header = slice_of(seen)
            of_set = f" slice {header['slice_index']} of {header['set_id']}" if header else ""
            route = f"{'>'.join(seen.prev)}[{seen.curr}]{'>'.join(seen.next)}"
            what += f"{seen.id} {seen.phase} {seen.status.get('reason') or ''} {seen.attempt} {route}{of_set}"
        self.ledger.nature.log.note(self.ledger.nature.scheduler.seconds, "message", what)

    def _check_told(self, told: tuple[str, str, int], to: str, work: Work | None) -> None:
        """A message about a set: ends of slices are told by those who end them, looks at the clock by the actor itself."""
        if self.ledger.mesh.actors[to].kind != "fan_in":
            self.ledger.violated(f"{to} was told of a set and puts none together")
        if work is not None:
            work.told.add(told[1:])
            if told[0] == "set-due" and work.actor not in (to, "x-fan-in-sweep"):
                self.ledger.violated(f"{work.actor} sent {to} a look at the clock")
            if told[0] == "slice-ended" and work.actor not in ("x-sink", "x-sump", "x-dlq"):
                self.ledger.violated(f"{work.actor} told {to} of the end of a slice")

    def _left_a_set(self, work: Work, seen: Seen, to: str, body: str) -> bool:
        """Whether an envelope that a fan-in actor sent left a set; then it has been checked as such."""
        if work.actor not in self.ledger.mesh.actors or self.ledger.mesh.actors[work.actor].kind != "fan_in":
            return False
        complaints = [
            list(self.ledger.sets.leaving(one, seen, to, body)) for one in self.ledger.sets.origin_of(seen, work.actor)
        ]
        if not complaints:
            return False
        self._check_in_due_time(seen, work)
        for message in work.messages:
            work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
        if [] not in complaints:
            self.ledger.violated(f"{work.actor} sent {seen.id} to {to}: {'; '.join(shortest(complaints))}")
        return True

    def _check_in_due_time(self, seen: Seen, work: Work) -> None:
        """In calm weather no set keeps its origin for much longer than its timeout."""
        sets, nature = self.ledger.tables["fan-in"], self.ledger.nature
        dues = [
            datetime.fromisoformat(sets[one, "set"]["due_at"]["S"])
            for one in self.ledger.sets.origin_of(seen, work.actor)
            if (one, "set") in sets
        ]
        late = nature.scheduler.now - timedelta(minutes=5)
        if dues and nature.faults.weather.is_calm and max(dues) < late:
            self.ledger.violated(f"{seen.id} left its set at {nature.scheduler.now}; it was due at {max(dues)}")

    def _note_trail(self, seen: Seen) -> None:
        """One frame, one id: whoever runs a hop again gives its frames the ids they had."""
        trail = seen.trail
        if trail:
            self.ledger.accepted_trails.add(steady(trail))
        if not trail or seen.headers.get("x-asya-hook") or seen.phase == "failed":
            return
        known = self.ledger.ids_of_trails.setdefault(trail, seen.id)
        # In another generation the same frame is another child.
        if known != seen.id and not self.ledger.has_redriven:
            self.ledger.violated(f"the frame {trail} has had the id {known} and now has {seen.id}")

    def _caused(self, work: Work, seen: Seen, to: str, sender: Process) -> None:
        """A function sent something: one of the messages it was given must explain it."""
        complaints: list[list[str]] = []
        is_explained = False
        if work.actor in SYSTEM_QUEUES:
            self._left_a_run(work, seen, to, sender)
            return
        for message in work.messages:
            was = self.ledger.read(message)
            if was is None:
                if seen.status.get("reason") == "ParseError" and to == "x-sump":
                    work.unreadable.add(message.message_id)
                    work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
                    is_explained = True
                continue
            if was.id not in (seen.id, seen.parent_id):
                continue
            given = self.ledger.frames.get(seen.trail) if seen.trail is not None else None
            transition = Transition(
                self.ledger.mesh, was, seen, work.actor, to, given, self._is_of_another_run(was, work)
            )
            found = list(transition.problems())
            if not found:
                work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
                # A complaint about what could not be read may be too large itself, and then says only that.
                if seen.status.get("reason") == "ParseError" or seen.curr == "x-sump":
                    work.unreadable.add(message.message_id)
                elif not transition.is_later:
                    self._check_registered(was, work)
                self._check_left_once(message, was, seen, work)
                self._check_kept(was, seen, work)
                is_explained = True
            complaints.append(found)
        if is_explained:
            return
        if not complaints:
            self.ledger.violated(f"{sender.name} sent {seen.id} to {to}, and was given nothing of the kind")
            return
        self.ledger.violated(f"{sender.name} sent {seen.id} to {to}: {'; '.join(shortest(complaints))}")

    def _left_a_run(self, work: Work, seen: Seen, to: str, sender: Process) -> None:
        """The dispatcher or the completion sent something: an envelope that was pending must explain it."""
        given = self.ledger.frames.get(seen.trail) if seen.trail is not None else None
        complaints: list[list[str]] = []
        explained: list[tuple[AttemptKey, Seen]] = []
        for place, was, actor in self.ledger.runs.of(seen):
            found = list(Transition(self.ledger.mesh, was, seen, actor, to, given).problems())
            complaints.append(found)
            if not found:
                explained.append((place, was))
        if explained:
            self.ledger.runs.note_sent(explained, seen)
        else:
            why = "; ".join(shortest(complaints)) if complaints else "nothing of the kind was pending"
            self.ledger.violated(f"{sender.name} sent {seen.id} to {to}: {why}")

    def _check_kept(self, was: Seen, seen: Seen, work: Work) -> None:
        """The frames of a buffered hop, and slices, leave only as they were kept first: each run sends the same."""
        if seen.trail is None or seen.prev != (*was.prev, was.curr) or seen.trail == was.trail:
            return
        if self.ledger.mesh.actors[work.actor].frames != "buffered" and not is_slice(seen.trail):
            return
        kept = self.ledger.objects.get(frames_key(was), b"[]")
        trails = [frame["payload"]["trail"] for frame in json.loads(kept) if frame.get("payload")]
        if list(seen.trail) not in trails:
            self.ledger.violated(f"{work.actor} sent the frame {seen.trail}, and those that were kept are {trails}")

    def _check_left_once(self, message: Message, was: Seen, seen: Seen, work: Work) -> None:
        """An envelope leaves a hop once: nothing is retried or ended after frame 0 is on its way."""
        if seen.id != was.id or sum(one.message_id == message.message_id for one in work.messages) > 1:
            return
        if sum(other is not None and other.id == was.id for other in self._read_all(work)) > 1:
            return
        what = f"{seen.phase} {seen.prev} {seen.curr} {seen.attempt}"
        if work.left.setdefault(message.message_id, what) != what:
            self.ledger.violated(f"{was.id} left {work.actor} as {work.left[message.message_id]}, and then as {what}")

    def _read_all(self, work: Work) -> list[Seen | None]:
        return [self.ledger.read(message) for message in work.messages]

    def _is_of_another_run(self, was: Seen, work: Work) -> bool:
        """Whether a buffered hop has frames that were kept from a payload that another run of an earlier hop gave."""
        kept = self.ledger.objects.get(frames_key(was))
        if kept is None or was.trail is None:
            return False
        frames = [frame["payload"] for frame in json.loads(kept) if frame.get("payload")]
        return any(tuple(payload["trail"])[:-1] != was.trail for payload in frames)

    def _check_registered(self, was: Seen, work: Work) -> None:
        """What came without a status is made known before anything it causes leaves."""
        if was.status or was.is_stealth or work.actor in ("x-sink", "x-sump"):
            return
        if (was.id, "record") not in self.ledger.tables["tasks"]:
            self.ledger.violated(f"{was.id} caused something before its task was known")
