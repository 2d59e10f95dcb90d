"""The onlooker's book: every message, object and record, checked as it comes against what the protocol allows."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from asya.protocol import ids
from asya.protocol.mesh_table import MeshTable
from asya.runtime.call import BLOCKED_LOOP_GRACE
from tests.simulation.process import Nature, Process, Work
from tests.simulation.programs import Given, HandlerCall, Trail, is_slice
from tests.simulation.queues import Message
from tests.simulation.seen import Seen, read
from tests.simulation.sets import SetBook, slice_of, told_set
from tests.simulation.transitions import Transition

RANKS = {"pending": 0, "running": 1, "paused": 2, "succeeded": 3, "failed": 3, "canceled": 3}
TERMINAL = ("succeeded", "failed", "canceled")
MOST_VIOLATIONS = 20


@dataclass
class Ledger:
    """What has happened so far.

    Attributes:
        stops_at_once: whether the first violation ends the schedule.
        violations: what must not have happened.
        accepted: every envelope that a queue has taken and the actor whose queue it was, by id.
        messages_of: the ids of the messages that brought an envelope.
        unreadable: messages that are no envelopes, with the id that they are to end under.
        canceled: tasks that were canceled while they ran.
        calls: every call of a handler, by actor and trail.
        frames: who gave which frame, by trail.
        stored: slices that their fan-in actor has taken.
        killers: message id → the calls that ended a process while it was in their batch.
    """

    nature: Nature
    mesh: MeshTable
    objects: Mapping[str, bytes]
    tables: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]]
    stops_at_once: bool = False
    violations: list[str] = field(default_factory=list)
    accepted: dict[str, list[tuple[Seen, str]]] = field(default_factory=lambda: defaultdict(list))
    messages_of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unreadable: dict[str, Message] = field(default_factory=dict)
    canceled: dict[str, float] = field(default_factory=dict)
    calls: dict[tuple[str, Trail], list[HandlerCall]] = field(default_factory=lambda: defaultdict(list))
    frames: dict[Trail, Given] = field(default_factory=dict)
    ids_of_trails: dict[Trail, str] = field(default_factory=dict)
    accepted_trails: set[Trail] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    killers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    buried_messages: list[Message] = field(default_factory=list)
    marked: dict[tuple[str, str], float] = field(default_factory=dict)
    written: dict[tuple[str, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the book of sets."""
        self.sets = SetBook(self.mesh, self.tables["fan-in"])

    def violated(self, rule: str) -> None:
        """Note that something happened that must not."""
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(f"at {self.nature.scheduler.seconds:.3f} s: {rule}")
        if self.stops_at_once:
            self.nature.scheduler.stop()
        self.nature.log.note(self.nature.scheduler.seconds, "VIOLATION", rule)

    # --- queues ----------------------------------------------------------------------------------------------------

    def accepted_message(self, message: Message, sender: Process | None) -> None:
        """A queue has taken a message."""
        actor = self.actor_of(message.queue)
        seen = read(message.body, self.objects)
        work = sender.work if sender is not None else None
        told = told_set(message.body)
        self._log(message, seen, actor, told)
        if told is not None:
            self._check_told(told, actor, work)
            return
        if seen is None:
            self.unreadable[ids.id_of_message(message.message_id)] = message
            if work is not None:
                self.violated(f"{work.actor} sent to {actor} what is no envelope: {message.body[:200]}")
            return
        self.accepted[seen.id].append((seen, actor))
        self.messages_of[seen.id].add(message.message_id)
        self.sets.note(seen, actor)
        self._note_trail(seen)
        if len(seen.prev) > self.mesh.max_hops:
            self.violated(f"{seen.id} has done {len(seen.prev)} hops; {self.mesh.max_hops} are allowed")
        if work is not None and sender is not None and not self._left_a_set(work, seen, actor, message.body):
            self._caused(work, seen, actor, sender)

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
        self.nature.log.note(self.nature.scheduler.seconds, "message", what)

    def _check_told(self, told: tuple[str, str, int], to: str, work: Work | None) -> None:
        """A message about a set: ends of slices are told by those who end them, looks at the clock by the actor itself."""
        if self.mesh.actors[to].kind != "fan_in":
            self.violated(f"{to} was told of a set and puts none together")
        if work is not None:
            work.told.add(told[1:])
            if told[0] == "set-due" and work.actor not in (to, "x-fan-in-sweep"):
                self.violated(f"{work.actor} sent {to} a look at the clock")
            if told[0] == "slice-ended" and work.actor not in ("x-sink", "x-sump", "x-dlq"):
                self.violated(f"{work.actor} told {to} of the end of a slice")

    def _left_a_set(self, work: Work, seen: Seen, to: str, body: str) -> bool:
        """Whether an envelope that a fan-in actor sent left a set; then it has been checked as such."""
        if work.actor not in self.mesh.actors or self.mesh.actors[work.actor].kind != "fan_in":
            return False
        complaints = [list(self.sets.leaving(one, seen, to, body)) for one in self.sets.origin_of(seen, work.actor)]
        if not complaints:
            return False
        for message in work.messages:
            work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
        if [] not in complaints:
            self.violated(f"{work.actor} sent {seen.id} to {to}: {'; '.join(min(complaints, key=len))}")
        return True

    def _note_trail(self, seen: Seen) -> None:
        """One frame, one id: whoever runs a hop again gives its frames the ids they had."""
        trail = seen.trail
        if trail:
            self.accepted_trails.add(_steady(trail))
        if not trail or seen.headers.get("x-asya-hook") or seen.phase == "failed":
            return
        known = self.ids_of_trails.setdefault(trail, seen.id)
        if known != seen.id:
            self.violated(f"the frame {trail} has had the id {known} and now has {seen.id}")

    def _caused(self, work: Work, seen: Seen, to: str, sender: Process) -> None:
        """A function sent something: one of the messages it was given must explain it."""
        complaints: list[list[str]] = []
        is_explained = False
        for message in work.messages:
            was = read(message.body, self.objects)
            if was is None:
                if seen.status.get("reason") == "ParseError" and to == "x-sump":
                    work.unreadable.add(message.message_id)
                    work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
                    is_explained = True
                continue
            if was.id not in (seen.id, seen.parent_id):
                continue
            given = self.frames.get(seen.trail) if seen.trail is not None else None
            transition = Transition(self.mesh, was, seen, work.actor, to, given, self._is_of_another_run(was, work))
            found = list(transition.problems())
            if not found:
                work.caused[message.message_id] = work.caused.get(message.message_id, 0) + 1
                if seen.status.get("reason") == "ParseError":
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
            self.violated(f"{sender.name} sent {seen.id} to {to}, and was given nothing of the kind")
            return
        self.violated(f"{sender.name} sent {seen.id} to {to}: {'; '.join(min(complaints, key=len))}")

    def _check_kept(self, was: Seen, seen: Seen, work: Work) -> None:
        """The frames of a buffered hop, and slices, leave only as they were kept first: each run sends the same."""
        if seen.trail is None or seen.prev != (*was.prev, was.curr) or seen.trail == was.trail:
            return
        if self.mesh.actors[work.actor].frames != "buffered" and not is_slice(seen.trail):
            return
        kept = self.objects.get(f"frames/{was.id}/{was.generation}/{len(was.prev)}.json", b"[]")
        trails = [frame["payload"]["trail"] for frame in json.loads(kept) if frame.get("payload")]
        if list(seen.trail) not in trails:
            self.violated(f"{work.actor} sent the frame {seen.trail}, and those that were kept are {trails}")

    def _check_left_once(self, message: Message, was: Seen, seen: Seen, work: Work) -> None:
        """An envelope leaves a hop once: nothing is retried or ended after frame 0 is on its way."""
        if seen.id != was.id or sum(one.message_id == message.message_id for one in work.messages) > 1:
            return
        if sum(other is not None and other.id == was.id for other in self._read_all(work)) > 1:
            return
        what = f"{seen.phase} {seen.prev} {seen.curr} {seen.attempt}"
        if work.left.setdefault(message.message_id, what) != what:
            self.violated(f"{was.id} left {work.actor} as {work.left[message.message_id]}, and then as {what}")

    def _read_all(self, work: Work) -> list[Seen | None]:
        return [read(message.body, self.objects) for message in work.messages]

    def _is_of_another_run(self, was: Seen, work: Work) -> bool:
        """Whether a buffered hop has frames that were kept from a payload that another run of an earlier hop gave."""
        kept = self.objects.get(f"frames/{was.id}/{was.generation}/{len(was.prev)}.json")
        if kept is None or was.trail is None:
            return False
        frames = [frame["payload"] for frame in json.loads(kept) if frame.get("payload")]
        return any(tuple(payload["trail"])[:-1] != was.trail for payload in frames)

    def _check_registered(self, was: Seen, work: Work) -> None:
        """What came without a status is made known before anything it causes leaves."""
        if was.status or was.is_stealth or work.actor in ("x-sink", "x-sump"):
            return
        if (was.id, "record") not in self.tables["tasks"]:
            self.violated(f"{was.id} caused something before its task was known")

    def deleted(self, message: Message, work: Work | None) -> None:
        """A message is gone for good: what it was to cause must have been accepted."""
        if work is None:
            return
        seen = read(message.body, self.objects)
        match work.actor:
            case "x-sink":
                if seen is not None and message.message_id not in work.unreadable:
                    self._check_sunk(message, seen, work)
            case "x-sump":
                self._check_sumped(message, seen)
            case actor if self.mesh.actors[actor].kind == "fan_in":
                self._check_stored(message, seen, work)
            case actor:
                self._check_worked_on(message, seen, actor, work)

    def _check_stored(self, message: Message, seen: Seen | None, work: Work) -> None:
        """A slice is stored, and its own task reported as done, before its message is acked."""
        if seen is None or told_set(message.body) is not None:
            return
        if not self.sets.is_stored(seen):
            if not work.caused.get(message.message_id):
                self.violated(f"{work.actor} acked {seen.id} and neither stored it nor sent it anywhere")
            return
        header = slice_of(seen)
        if header is not None and header["slice_index"] > 0:
            self.stored.add(seen.id)
            if not seen.is_stealth and not work.caused.get(message.message_id):
                self._check_reported(seen, work.actor)

    def _check_worked_on(self, message: Message, seen: Seen | None, actor: str, work: Work) -> None:
        if seen is not None and self._is_marked(seen, work):
            return
        if not work.caused.get(message.message_id):
            self.violated(
                f"{actor} acked message {message.message_id} ({seen.id if seen else '?'}) and it caused nothing"
            )
        if seen is None or seen.trail is None:
            return
        if sum(read(one.body, self.objects) == seen for one in work.messages) > 1:
            return  # which of the equal messages was acked, and which was kept, only the function knows
        for call in self.calls[actor, seen.trail]:
            if call.began >= work.began and call.process.work is work:
                self._check_frames(call, actor, seen)

    def _check_frames(self, call: HandlerCall, actor: str, seen: Seen) -> None:
        """Every frame that a handler gave before its message was acked is on its way."""
        if slice_of(seen) is not None and call.ended != "well":
            return  # what a slice's actor gives leaves as a whole
        if slice_of(seen) is not None and len(call.given) > 1 and not any(is_slice(one.trail) for one in call.given):
            return  # a slice has room for one result
        is_split = any(is_slice(one.trail) for one in call.given)
        if (is_split or self.mesh.actors[actor].frames == "buffered") and (
            call.ended != "well" or not self._are_kept(call, seen)
        ):
            return
        for given in call.given:
            ahead = seen.next if given.next is None else given.next
            if ahead and (ahead[0] not in self.mesh.actors or ahead[0].startswith("x-")):
                return  # nothing leaves from here on: the hop ends in a mismatch
            # Of frames that are different each time those count that were kept first.
            if _steady(given.trail) not in self.accepted_trails:
                self.violated(f"{actor} acked a message whose frame {given.trail} was not accepted anywhere")

    def _are_kept(self, call: HandlerCall, seen: Seen) -> bool:
        """Whether a buffered hop's frames, which count for all its runs, are those of this call or of one like it."""
        kept = self.objects.get(f"frames/{seen.id}/{seen.generation}/{len(seen.prev)}.json", b"[]")
        trails = [_steady(tuple(frame["payload"]["trail"])) for frame in json.loads(kept) if frame.get("payload")]
        return set(trails) == {_steady(given.trail) for given in call.given}

    def _is_marked(self, seen: Seen, work: Work) -> bool:
        if not self.mesh.actors[work.actor].deduplicate:
            return False
        return _place(seen) in self.tables["hops"]

    def _check_sunk(self, message: Message, seen: Seen, work: Work) -> None:
        phase = seen.phase if seen.phase in (*TERMINAL, "paused") else "succeeded"
        claim = self.tables["sink"].get((seen.id, "claim"))
        if phase in TERMINAL:
            if claim is None:
                self.violated(f"x-sink acked {seen.id} ({phase}) without a claim")
                return
            if (claim["phase"]["S"], int(claim["generation"]["N"])) != (phase, seen.generation):
                return  # it had ended otherwise, or later, already
        is_hook_copy = "x-asya-hook" in seen.headers
        if self.mesh.sink.persist and not is_hook_copy and not self._object_of(seen.id, phase):
            self.violated(f"x-sink acked {seen.id} ({phase}) and there is no object")
        if phase in ("succeeded", "failed") and not seen.is_stealth:
            self._check_reported(seen, "x-sink")
        header = slice_of(seen)
        if header is not None and phase in TERMINAL and (header["set_id"], header["slice_index"]) not in work.told:
            self.violated(f"x-sink acked {seen.id} ({phase}), a slice, and did not tell its set")
        if phase == "failed" and not work.caused.get(message.message_id):
            self.violated(f"x-sink acked {seen.id} (failed) and did not pass it on")

    def _check_sumped(self, message: Message, seen: Seen | None) -> None:
        if seen is None or f"results/sump/unreadable/{message.message_id}" in self.objects:
            kept = (f"results/sump/unreadable/{message.message_id}", self._key("sump", expected_id(message)))
            if not any(key in self.objects for key in kept):
                self.violated(f"x-sump acked the unreadable message {message.message_id} without keeping it")
            return
        if self._key("sump", seen.id) not in self.objects:
            self.violated(f"x-sump acked {seen.id} and there is no object")
        if not seen.is_stealth:
            self._check_reported(seen, "x-sump")

    def _check_reported(self, seen: Seen, actor: str) -> None:
        """Must-arrive: the record is terminal before the message is acked."""
        record = self.tables["tasks"].get((seen.id, "record"))
        if record is None or record["status"]["S"] not in TERMINAL:
            status = record["status"]["S"] if record else "missing"
            self.violated(f"{actor} acked {seen.id} and its record is {status}")

    def _object_of(self, envelope_id: str, phase: str) -> bytes | None:
        return self.objects.get(self._key(phase, envelope_id))

    @staticmethod
    def _key(prefix: str, envelope_id: str) -> str:
        return f"results/{prefix}/{envelope_id}.json"

    def buried(self, message: Message) -> None:
        """A message was received too often."""
        self.buried_messages.append(message)

    # --- handlers --------------------------------------------------------------------------------------------------

    def called(self, call: HandlerCall) -> int:
        """A handler is called; gives how often it was before, with the same payload."""
        key = (call.actor, call.trail)
        before = len(self.calls[key])
        self.calls[key].append(call)
        call.process.note(f"handler {call.actor} {'/'.join(call.trail)} (call {before + 1})")
        self._check_not_marked(call)
        self._check_not_canceled(call)
        self._check_in_time(call)
        return before

    def gave(self, call: HandlerCall, given: Given) -> None:
        """A handler gives a frame."""
        if call.deadline is not None and call.process.now() > call.deadline + timedelta(seconds=BLOCKED_LOOP_GRACE):
            self.violated(f"the handler of {call.actor} gave {given.trail} after its deadline, {call.deadline}")
        call.given.append(given)
        self.frames[given.trail] = given

    def _check_not_marked(self, call: HandlerCall) -> None:
        """A hop that was marked as done is not done again."""
        work = call.process.work
        if work is None or not self.mesh.actors[call.actor].deduplicate:
            return
        found = [seen for message in work.messages if (seen := read(message.body, self.objects)) is not None]
        about = [seen for seen in found if seen.trail == call.trail]
        if about and all(self.marked.get(_place(seen), float("inf")) < work.began for seen in about):
            self.violated(f"the handler of {call.actor} was called for {about[0].id}, though this attempt was done")

    def _check_in_time(self, call: HandlerCall) -> None:
        """No handler is called after its envelope's deadline."""
        about = [
            seen
            for message in (call.process.work.messages if call.process.work else ())
            if (seen := read(message.body, self.objects)) is not None and seen.trail == call.trail
        ]
        deadlines = [seen.status.get("deadline_at") for seen in about]
        if deadlines and None not in deadlines:
            call.deadline = max(datetime.fromisoformat(text) for text in deadlines)
            if call.deadline < call.process.now():
                self.violated(f"the handler of {call.actor} was called for {about[0].id} after {call.deadline}")

    def _check_not_canceled(self, call: HandlerCall) -> None:
        """A canceled task's handlers are not called any more, where the gateway could be asked."""
        work = call.process.work
        if work is None or work.states_asked_at is None:
            return
        for message in work.messages:
            seen = read(message.body, self.objects)
            if seen is None or seen.trail != call.trail or seen.is_stealth or not seen.status:
                continue
            for task in (seen.id, seen.headers.get("x-asya-root")):
                if isinstance(task, str) and self.canceled.get(task, float("inf")) < work.states_asked_at:
                    self.violated(f"the handler of {call.actor} was called for {seen.id}, though {task} was canceled")

    # --- tables and objects ----------------------------------------------------------------------------------------

    def item_written(self, table: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """An item of a table has changed."""
        if after is None:
            return
        key = (after["pk"]["S"], after["sk"]["S"])
        if table.endswith("-hops"):
            self.marked.setdefault(key, self.nature.scheduler.seconds)
        if table.endswith("-tasks") and key[1] == "record":
            self._record_written(before, after)
        if table.endswith("-sink") and before is not None:
            self._claim_written(before, after)

    def _record_written(self, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
        """A status never goes back, and a terminal one never changes, but in a new generation."""
        old, new = (_status(before), _status(after)) if before else (("pending", -1), _status(after))
        task = after["pk"]["S"]
        self.nature.log.note(self.nature.scheduler.seconds, "record", f"{task}: {new[0]}")
        if new[1] < old[1]:
            self.violated(f"the record of {task} went back from generation {old[1]} to {new[1]}")
        if new[1] == old[1]:
            if RANKS[new[0]] < RANKS[old[0]]:
                self.violated(f"the record of {task} went back from {old[0]} to {new[0]}")
            if new[0] == "canceled":
                self.canceled.setdefault(task, self.nature.scheduler.seconds)
            if old[0] in TERMINAL and new[0] != old[0]:
                self.violated(f"the record of {task} was {old[0]} and became {new[0]}")

    def _claim_written(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        was, now = int(before["generation"]["N"]), int(after["generation"]["N"])
        if now < was or (now == was and before["phase"] != after["phase"]):
            self.violated(
                f"the end of {after['pk']['S']} was {before['phase']['S']} ({was}) and became {after['phase']['S']} ({now})"
            )

    def object_written(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """An object was written, perhaps over another."""
        if key.startswith("frames/") and before not in (None, body):
            self.violated(f"{by.name} replaced {key}, which counts as it was written first")
        if not key.startswith("results/") or key.startswith("results/checkpoint/") or "/unreadable/" in key:
            return
        try:
            found = json.loads(body)
        except ValueError:
            self.violated(f"{by.name} wrote {key}, which is no JSON")
            return
        for header in found.get("headers", {}):
            if header == "x-asya-payload-ref":
                self.violated(f"{key} shows the header {header}")
        prefix = key.split("/")[1]
        phase = found.get("status", {}).get("phase")
        if phase != ("failed" if prefix == "sump" else prefix):
            self.violated(f"{key} holds an envelope in phase {phase}")

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


def _place(seen: Seen) -> tuple[str, str]:
    """The key under which this attempt at this hop is marked as done."""
    return seen.id, f"{seen.generation:04d}#{len(seen.prev):06d}#{seen.attempt:06d}"


def _steady(trail: Trail) -> Trail:
    """The trail but for what makes its last frame different each time."""
    return (*trail[:-1], trail[-1].partition("~")[0])


def _status(record: Mapping[str, Any]) -> tuple[str, int]:
    return record["status"]["S"], int(record["generation"]["N"])
