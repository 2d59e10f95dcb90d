"""Checks pauses (`protocol §11`): each is answered once, and what it holds goes on with this answer or ends."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from asya.protocol.mesh_table import MeshTable
from asya.tasks.view import TIMEOUT_ERROR
from tests.simulation.checks.observed_envelope import ObservedEnvelope, read_envelope
from tests.simulation.pauses.answers import answer_problems

PREFIX = "paused/"
HEADER, INPUT, AT = "x-asya-pause", "x-asya-resume-input", "x-asya-resume-at"
Item = Mapping[str, Any]


class Pause(NamedTuple):
    """A pause: the envelope's id and generation, and the position."""

    id: str
    generation: int
    epoch: int

    @property
    def key(self) -> str:
        """The key of its object; the ids of the simulation need no encoding."""
        return f"{PREFIX}{self.id}/{self.generation}/{self.epoch}.json"


@dataclass
class PauseRegistry:
    """Records the pauses of all tasks.

    Attributes:
        on_stored: called with the id of an envelope that a pause has stored.
        stored: the envelopes as first stored.
        began: the time when the record first said that the task is paused.
        answers: the time and the answer with which the record was resumed.
        sent: the answers that callers have sent, by task.
        accepted: the number of answers that the API accepted, by task.
        canceled: tasks that were canceled while they were paused, by id and generation.
    """

    mesh: MeshTable
    objects: Mapping[str, bytes]
    records: Mapping[tuple[str, str], Item]
    report_violation: Callable[[str], None]
    on_stored: Callable[[str], None] = lambda _: None
    stored: dict[Pause, ObservedEnvelope] = field(default_factory=dict)
    began: dict[Pause, float] = field(default_factory=dict)
    answers: dict[Pause, tuple[float, str]] = field(default_factory=dict)
    sent: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    accepted: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    canceled: set[tuple[str, int]] = field(default_factory=set)

    # --- writes ----------------------------------------------------------------------------------------------------

    def object_written(self, key: str, body: bytes, before: bytes | None) -> None:
        """The first envelope of a pause stays until its tombstone."""
        if not key.startswith(PREFIX) or not key.endswith(".json"):
            return
        envelope = read_envelope(body, self.objects)
        if envelope is None:
            if "resumed_at" not in json.loads(body):
                self.report_violation(f"{key} holds neither an envelope nor a tombstone")
            return
        if before is not None and before != body:
            self.report_violation(f"{key} was replaced by another envelope")
        pause = _pause_of(key)
        if pause not in self.stored:
            self.stored[pause] = envelope
            self.on_stored(pause.id)

    def record_written(self, before: Item | None, after: Item, seconds: float) -> None:
        """Record the begin and the answer of a pause; of several answers only the first one counts."""
        pause = pause_of_record(after)
        if pause is None:
            return
        status = after["status"]["S"]
        if status == "paused":
            self.began.setdefault(pause, seconds)
            if not self._is_stored(pause):
                self.report_violation(f"{pause.id} is paused, but {pause.key} does not hold its envelope")
        was_paused = before is not None and before["status"]["S"] == "paused" and pause_of_record(before) == pause
        if status in ("succeeded", "failed") and before is not None and before["status"]["S"] != status:
            self._check_end(pause, after)
        if was_paused and status == "canceled":
            self.canceled.add((pause.id, pause.generation))
        if was_paused and status == "running" and "handover" in after:
            release = json.loads(after["handover"]["S"])
            if pause in self.answers:
                self.report_violation(f"{pause} was resumed twice")
            self.answers[pause] = (seconds, _canonical(release.get("input")))
            self._check_answer(pause, release.get("input"))
        elif was_paused and status == "running":
            self.report_violation(f"{pause} ended without an answer")

    def _check_answer(self, pause: Pause, answer: Any) -> None:
        """A caller has sent the answer, and it fits the fields of the pause that it ends."""
        stored = self.stored.get(pause)
        if stored is None:
            return  # the record was paused without its envelope, which is a violation of its own
        for problem in answer_problems(stored.headers[HEADER].get("fields", []), answer, self.sent[pause.id]):
            self.report_violation(f"a wrong answer resumed {pause}: {problem}: {answer}")

    def _check_end(self, pause: Pause, record: Item) -> None:
        """A task that paused ends by what came after its pause, except by its deadline."""
        error = json.loads(record["error"]["S"]) if "error" in record else {}
        # The sweep of deadlines also names the outages since the task began.
        is_timeout = error.get("message", "").startswith(TIMEOUT_ERROR.message)
        if "route" not in record or is_timeout or error.get("type") == "ParseError":
            return
        route = json.loads(record["route"]["S"])
        position = len(route["prev"]) - (record["status"]["S"] == "succeeded" and not route["curr"])
        if position <= pause.epoch:
            self.report_violation(
                f"{pause.id} ended as {record['status']['S']} by its hop {position}, but it paused at {pause.epoch}"
            )

    def answer_sent(self, task_id: str, answer: Any) -> None:
        """A caller sends an answer; it may count even if its response is lost."""
        self.sent[task_id].append(answer)

    def answer_accepted(self, task_id: str) -> None:
        """The API accepted an answer; each pause takes one."""
        self.accepted[task_id] += 1
        resumed = sum(pause.id == task_id for pause in self.answers)
        if self.accepted[task_id] > resumed:
            self.report_violation(f"{self.accepted[task_id]} answers to {task_id} were accepted for {resumed} pauses")

    # --- messages --------------------------------------------------------------------------------------------------

    def sent_to_resume(self, envelope: ObservedEnvelope) -> Iterator[str]:
        """Yield the violations of a message to x-resume: it is what the pause stored, with the accepted answer."""
        pause = pause_of_header(envelope)
        if pause is None or pause not in self.stored:
            yield f"{envelope.id} was sent to x-resume, but no pause holds it"
            return
        stored = self.stored[pause]
        for name in ("parent_id", "prev", "curr", "next", "payload"):
            if getattr(envelope, name) != getattr(stored, name):
                yield f"{name} of the paused {pause} was {getattr(stored, name)} and is {getattr(envelope, name)}"
        answer = _canonical(envelope.headers.get(INPUT))
        if pause not in self.answers:
            yield f"{pause} was released without an answer"
        elif answer != self.answers[pause][1]:
            yield f"the answer to {pause} was {self.answers[pause][1]} and is {answer}"

    def resumed(self, before: ObservedEnvelope, after: ObservedEnvelope) -> Iterator[str]:
        """Yield the violations of an envelope that left x-resume: its payload, its deadline and its headers."""
        header = before.headers.get(HEADER)
        if not isinstance(header, dict):
            return
        if after.phase == "failed" and after.prev == before.prev:
            return  # one that fails at x-resume, such as by max_hops, keeps the answers for a replay
        for name in (HEADER, INPUT, AT):
            if name in after.headers:
                yield f"header {name} left x-resume"
        if after.phase not in ("pending", "succeeded"):
            return
        answered = merged(before.payload, header.get("fields", []), before.headers.get(INPUT, {}))
        if after.payload != answered:
            yield f"the answers make {answered}, but x-resume sent {after.payload}"
        remaining, at = header.get("remaining"), before.headers.get(AT)
        expected = datetime.fromisoformat(at) + timedelta(seconds=remaining) if remaining is not None and at else None
        deadline = after.status.get("deadline_at")
        if (datetime.fromisoformat(deadline) if deadline else None) != expected:
            yield f"{remaining} s remained at {at}, but the deadline is {deadline}"

    @property
    def releases(self) -> list[str]:
        """The tasks whose release to x-resume or x-sink was not sent yet."""
        return [key[0] for key, item in self.records.items() if key[1] == "record" and "handover" in item]

    # --- the state of a pause --------------------------------------------------------------------------------------

    def is_paused(self, envelope_id: str) -> bool:
        """Whether a task waits for an answer, with its envelope stored."""
        record = self.records.get((envelope_id, "record"))
        pause = pause_of_record(record) if record is not None else None
        return record is not None and record["status"]["S"] == "paused" and pause is not None and self._is_stored(pause)

    def is_handled(self, envelope: ObservedEnvelope) -> bool:
        """Whether the pause at this envelope's position holds it, or held it until its answer."""
        return Pause(envelope.id, envelope.generation, len(envelope.prev)).key in self.objects

    def is_answered(self, envelope: ObservedEnvelope) -> bool:
        """Whether a tombstone says that x-resume has sent this envelope on."""
        pause = pause_of_header(envelope)
        return pause is not None and pause.key in self.objects and not self._is_stored(pause)

    def has_passed(self, envelope: ObservedEnvelope) -> bool:
        """Whether a pause at or above this position is in the record, so that this copy is a late one."""
        record = self.records.get((envelope.id, "record"))
        pause = pause_of_record(record) if record is not None else None
        return pause is not None and pause.generation == envelope.generation and len(envelope.prev) <= pause.epoch

    def passed_at(self, envelope: ObservedEnvelope) -> float | None:
        """When the record first had a pause at or above this position; None without one."""
        times = (
            seconds
            for pause, seconds in self.began.items()
            if pause[:2] == (envelope.id, envelope.generation) and len(envelope.prev) <= pause.epoch
        )
        return min(times, default=None)

    def is_kept(self, before: ObservedEnvelope, envelope: ObservedEnvelope) -> bool:
        """Whether a pause actor sent the envelope that it keeps for this one, because its task was canceled."""
        pause = Pause(before.id, before.generation, len(before.prev))
        stored = self.stored.get(pause)
        names = ("parent_id", "prev", "curr", "next", "payload")
        return (
            stored is not None
            and envelope.phase == "canceled"
            and all(getattr(envelope, name) == getattr(stored, name) for name in names)
        )

    def is_notified(self, envelope: ObservedEnvelope) -> bool:
        """Whether the event of the pause at this position was published."""
        return f"{Pause(envelope.id, envelope.generation, len(envelope.prev)).key}.notified" in self.objects

    def _is_stored(self, pause: Pause) -> bool:
        body = self.objects.get(pause.key)
        return body is not None and read_envelope(body, self.objects) is not None


def pause_of_record(record: Item) -> Pause | None:
    """Return the latest pause in a record."""
    if "pause_epoch" not in record:
        return None
    return Pause(record["pk"]["S"], int(record["generation"]["N"]), int(record["pause_epoch"]["N"]))


def pause_of_header(envelope: ObservedEnvelope) -> Pause | None:
    """Return the pause in the header of an envelope."""
    header = envelope.headers.get(HEADER)
    return Pause(envelope.id, envelope.generation, header["epoch"]) if isinstance(header, dict) else None


def merged(payload: Any, fields: list[dict[str, Any]], answers: dict[str, Any]) -> Any:
    """Put answers into a payload; the pointers of the simulation lead through objects only."""
    result = json.loads(json.dumps(payload))
    pointers = {each["name"]: each.get("payload_key", f"/{each['name']}") for each in fields}
    for name, value in answers.items():
        *parents, last = pointers.get(name, f"/{name}").removeprefix("/").split("/")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return result


def _pause_of(key: str) -> Pause:
    envelope_id, generation, epoch = key.removeprefix(PREFIX).removesuffix(".json").rsplit("/", 2)
    return Pause(envelope_id, int(generation), int(epoch))


def _canonical(answers: Any) -> str:
    return json.dumps(answers, sort_keys=True)
