"""Checks job runs (`protocol §10`): pending envelopes, the members of runs, the results that count."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from msgspec import UNSET

from asya.protocol.mesh_table import MeshTable
from asya.testing.services.job_service import JobRun
from tests.simulation.checks.observed_envelope import ObservedEnvelope, read_envelope
from tests.simulation.inputs.programs import frame_index

Item = Mapping[str, Any]
# An envelope at one attempt at one hop: id, generation, position, attempt.
AttemptKey = tuple[str, int, int, int]
# Failures per origin before all members are charged.
FAILURE_LIMIT = 32
_RUN_STATES = {"formed": 0, "started": 1, "closed": 2}


@dataclass(frozen=True)
class Run:
    """A run as its manifest defines it.

    Attributes:
        members: their attempts, each with the number of the run that returned it, else 0.
    """

    actor: str
    number: int
    name: str
    members: tuple[tuple[AttemptKey, int], ...]


@dataclass
class RunRegistry:
    """Records the events of heavy actors' envelopes and reports violations.

    Attributes:
        is_fault_free: whether only handlers cause failures.
        report_violation: records a violation.
        is_poison: whether an envelope kills the process that handles it.
        has_passed_pause: whether another copy of an envelope paused at its position or above.
        items: the items of the pending table.
        enqueued: the stamped envelopes that became pending, with their actors.
        runs: the runs by actor and number.
        sent: the envelope sent under its own id, by attempt.
        stopped: attempts diverted as canceled or late.
        failed: attempts that failed, perhaps after some frames.
        sent_trails: the trails of sent payloads.
        mismatched: attempts that a function of one deployed version ended because it does not know an actor of the other.
        has_versions: whether two versions of the mesh are deployed one after the other.
        drained: the actors that are drained for longer than any invocation takes.
        was_drained: whether any actor was drained.
    """

    mesh: MeshTable
    is_fault_free: Callable[[], bool]
    report_violation: Callable[[str], None]
    objects: Mapping[str, bytes]
    items: Mapping[tuple[str, str], Item]
    is_poison: Callable[[ObservedEnvelope], bool] = lambda _: True
    has_passed_pause: Callable[[ObservedEnvelope], bool] = lambda _: False
    enqueued: dict[AttemptKey, tuple[ObservedEnvelope, str]] = field(default_factory=dict)
    runs: dict[tuple[str, int], Run] = field(default_factory=dict)
    sent: dict[AttemptKey, str] = field(default_factory=dict)
    stopped: set[AttemptKey] = field(default_factory=set)
    failed: set[AttemptKey] = field(default_factory=set)
    sent_trails: set[tuple[str, ...]] = field(default_factory=set)
    mismatched: set[AttemptKey] = field(default_factory=set)
    has_versions: bool = False
    drained: set[str] = field(default_factory=set)
    was_drained: bool = False
    _runs_of: dict[AttemptKey, list[Run]] = field(default_factory=lambda: defaultdict(list))
    _jobs: dict[str, JobRun] = field(default_factory=dict)
    _batches: dict[str, str] = field(default_factory=dict)
    _placed: set[tuple[str, str, int]] = field(default_factory=set)
    _in_driver: dict[tuple[str, int], set[AttemptKey]] = field(default_factory=lambda: defaultdict(set))
    _sizes: dict[str, int] = field(default_factory=dict)
    _trails: dict[str, frozenset[tuple[str, ...]]] = field(default_factory=dict)

    # --- writes to the table ---------------------------------------------------------------------------------------

    def item_written(self, before: Item | None, after: Item | None) -> None:
        """Checks a change of an item."""
        key = (after or before or {})["pk"]["S"]
        if key.startswith("PENDING#") and after is not None and before is None:
            self._check_enqueued(key.split("#")[1], after)
        if key.startswith("PENDING#") and after is None and before is not None:
            self._removed(before)
        if key.startswith("RUN#") and before is not None and after is not None and "state" in before:
            self._run_changed(before, after)

    def _check_enqueued(self, actor: str, item: Item) -> None:
        member = json.loads(item["member"]["B"])
        body = bytes(item["envelope"]["B"]) if "envelope" in item else self.objects[member["envelope_key"]]
        envelope = read_envelope(body, self.objects)
        if envelope is None:
            self.report_violation(f"{actor} made a malformed envelope pending: {body[:200]!r}")
            return
        self.enqueued.setdefault(_attempt_key(member), (_as_received(envelope), actor))

    def _removed(self, item: Item) -> None:
        """Checks that an envelope removed from pending is in a run or was diverted."""
        member = json.loads(item["member"]["B"])
        key, returned_by = _attempt_key(member), member.get("returned_by", 0)
        runs = [run for run in self._runs_of[key] if (key, returned_by) in run.members]
        if not runs and key not in self.stopped:
            self.report_violation(f"{key} is pending no more, and neither in a run nor has it left")

    def _run_changed(self, before: Item, after: Item) -> None:
        name = f"run {after['sk']['S']} of {after['pk']['S']}"
        if _RUN_STATES[after["state"]["S"]] < _RUN_STATES[before["state"]["S"]]:
            self.report_violation(f"{name} was {before['state']['S']} and is {after['state']['S']}")
        old_results, new_results = _results_of(before), _results_of(after)
        if old_results and new_results != old_results:
            self.report_violation(f"the results of {name} were those of {old_results}, and now those of {new_results}")
        if "job_run_id" in before and after.get("job_run_id") != before["job_run_id"]:
            self.report_violation(f"{name} was {before['job_run_id']} and is {after.get('job_run_id')}")

    # --- manifests and job runs ------------------------------------------------------------------------------------

    def manifest_written(self, key: str, body: bytes, before: bytes | None) -> None:
        """Checks a formed run: each envelope is in one run, and run n has started before run n + 1 is formed."""
        content, *lines = map(json.loads, body.split(b"\n")[:-1])
        actor, number = content["actor"], content["number"]
        if before is not None:
            self.report_violation(f"{key} was written twice")
        if actor in self.drained:
            self.report_violation(f"{key} was written while {actor} is drained")
        members = tuple((_attempt_key(member), member.get("returned_by", 0)) for member in lines)
        run = Run(actor, number, content["run_id"], members)
        for key, returned_by in members:
            for other in self._runs_of[key]:
                if (key, returned_by) in other.members:
                    self.report_violation(f"{key} is in {run.name}, and was in {other.name}")
                if not returned_by or not self._is_resolved(other):
                    self.report_violation(f"{key} is in {run.name}, and {other.name} has not given it back")
                if other.name in self._jobs and not self._jobs[other.name].is_over and not self._is_committed(other):
                    self.report_violation(f"{key} is in {run.name}, and {other.name} goes on")
            if key in self.sent:
                self.report_violation(f"{key} is in {run.name}, and left before: {self.sent[key]}")
            self._runs_of[key].append(run)
        self.runs[actor, number] = run
        self._check_isolation(run, number)
        self._check_size(run, content.get("size", ""))
        latest = self.runs.get((actor, number - 1))
        if number > 1 and latest is None:
            self.report_violation(f"{run.name} was formed, and there is none before it")
        if latest is not None:
            self._check_finished(latest, run)

    def batch_written(self, key: str, body: bytes, before: bytes | None) -> None:
        """Checks a batch of a resident run: it is written once, as one run that is in no other batch."""
        if before is not None:
            self.report_violation(f"{key} was written twice")
        content = json.loads(body.split(b"\n")[0])
        if "closed" in content:
            return
        name = content["run_id"]
        if name in self._jobs:
            self.report_violation(f"{name} is {key}, and has a job run of its own")
        if self._batches.setdefault(name, key) != key:
            self.report_violation(f"{name} is {key}, and was {self._batches[name]}")
        actor, number, _, batch = key.split("/")[1:5]
        resident = self._jobs.get(f"asya.{content['namespace']}.{actor}.{number}")
        if int(batch) > 1 and (actor, number, int(batch) - 1) not in self._placed:
            self.report_violation(f"{key} was written, and the batch before is none")
        self._placed.add((actor, number, int(batch)))
        self._check_isolation(self.runs[actor, content["number"]], int(number))
        if resident is None:
            self.report_violation(f"{name} is {key}, and the job run was never started")

    def _check_isolation(self, run: Run, driver: int) -> None:
        """Checks who shares a driver: that of this run, which another run may have started."""
        spark = self.mesh.actors[run.actor].spark
        isolation = spark.isolation if spark is not None else "none"
        shared = self._in_driver[run.actor, driver]
        shared |= {key for key, _ in run.members}
        headers = [self.enqueued[key][0].headers for key in shared]
        tenants = {each.get("x-asya-tenant") or each.get("x-asya-owner") for each in headers}
        if len(shared) > 1 and (
            isolation == "envelope" or (isolation == "tenant" and (len(tenants) > 1 or None in tenants))
        ):
            self.report_violation(f"{sorted(shared)} of {tenants} share the driver of run {driver} of {run.actor}")

    def _check_size(self, run: Run, name: str) -> None:
        """Checks the size of a run: that of its payloads, and a larger one only after a run that died of memory."""
        spark = self.mesh.actors[run.actor].spark
        if spark is None or spark.sizes is UNSET:
            return
        sizes = [size.name for size in spark.sizes]
        self._sizes[run.name] = place = sizes.index(name)
        for key, returned_by in run.members:
            expected = 0
            if returned_by:
                before = self.runs[run.actor, returned_by]
                expected = self._sizes[before.name]
                at_work = before.name if before.name in self._jobs else self._resident_name(before)
                may_grow = "137" in self._jobs[at_work].details and expected + 1 < len(sizes)
                if place not in (expected, expected + may_grow):
                    self.report_violation(
                        f"{key} is in {run.name} of size {name}, and was in {before.name} of {sizes[expected]}"
                    )
                continue
            if spark.size_by is not UNSET:
                trail = self.enqueued[key][0].trail or ()
                expected = next(index for index, size in enumerate(spark.sizes) if len(trail) <= (size.up_to or inf))
            if place != expected:
                self.report_violation(f"{key} is in {run.name} of size {name}, and needs {sizes[expected]}")

    def _resident_name(self, run: Run) -> str:
        """The name of the resident run whose batch a run is."""
        return self.runs[run.actor, self._resident_of(run.name)].name

    def _check_finished(self, latest: Run, run: Run) -> None:
        if self._state(latest) not in ("started", "closed"):
            self.report_violation(f"{run.name} was formed, and {latest.name} is {self._state(latest)}")
        waiting = set(self._waiting(latest.actor))
        for member in latest.members:
            if member in waiting:
                self.report_violation(f"{run.name} was formed, and {member[0]} of {latest.name} is still pending")

    def run_made(self, job: JobRun) -> None:
        """Checks a new job run: EMR Serverless has one of each name."""
        name = job.name
        if self._resident_of(name):
            self.report_violation(f"{name} was started, and is a batch of run {self._resident_of(name)}")
        if name in self._jobs:
            self.report_violation(f"{name} was started twice, as {self._jobs[name].job_run_id} and as {job.job_run_id}")
        self._jobs[name] = job
        if name not in {run.name for run in self.runs.values()}:
            self.report_violation(f"{name} was started, and never formed")

    # --- sent envelopes --------------------------------------------------------------------------------------------

    def of(self, envelope: ObservedEnvelope) -> Iterator[tuple[AttemptKey, ObservedEnvelope, str]]:
        """The pending envelopes that a sent envelope may come from."""
        for key, (pending, actor) in self.enqueued.items():
            if pending.id in (envelope.id, envelope.parent_id):
                yield key, pending, actor

    def note_sent(self, candidates: list[tuple[AttemptKey, ObservedEnvelope]], envelope: ObservedEnvelope) -> None:
        """Checks a sent envelope: an envelope leaves a hop once, and its frames are results that count.

        Args:
            candidates: the attempts that it may come from.
        """
        attempts = candidates
        if envelope.trail is not None and any(envelope.trail != pending.trail for _, pending in candidates):
            attempts = [(key, pending) for key, pending in candidates if envelope.trail in self._counting_for(key)]
            if not attempts:
                counting = set().union(*(self._counting_for(key) for key, _ in candidates))
                self.report_violation(
                    f"{candidates[0][0]} left as {envelope.trail}, which is in no result that counts: {sorted(counting)[:5]}"
                )
                return
        self._check_charge([pending for _, pending in attempts], envelope)
        key, pending = max(attempts, key=lambda pair: pair[0])
        if envelope.trail is not None:
            self.sent_trails.add(envelope.trail)
        if envelope.phase in ("failed", "retrying") or envelope.status.get("reason") == "PolicyRouted":
            self.failed.add(key)
        if envelope.id != pending.id:
            return
        if _is_stop(envelope):
            self.stopped.add(key)
            return
        if self.has_versions and envelope.status.get("reason") == "RouteMismatch":
            self.mismatched.add(key)
        what = f"{envelope.phase} {'>'.join(envelope.prev)}[{envelope.curr}] {envelope.status.get('attempt')} {envelope.trail}"
        before = self.sent.setdefault(key, what)
        if before != what and key not in self.mismatched and not self._depends_on_time(key):
            self.report_violation(f"{key} left as {before}, and then as {what}")

    def _check_charge(self, pending: list[ObservedEnvelope], envelope: ObservedEnvelope) -> None:
        """Without faults, checks that only poison envelopes are charged with a failed run."""
        error = envelope.status.get("error") or {}
        if (
            error.get("type") != "SparkJobFailed"
            or envelope.phase not in ("failed", "retrying")
            or not self.is_fault_free()
        ):
            return
        if any("timed out" in job.details for job in self._jobs.values()):
            return
        failures = [int(item["deaths"]["N"]) for (pk, _), item in self.items.items() if pk.startswith("DEATHS#")]
        if max(failures, default=0) < FAILURE_LIMIT and not any(self.is_poison(one) for one in pending):
            self.report_violation(
                f"{envelope.id} is charged with a failed run, but is no poison envelope: {error.get('message')}"
            )

    def _depends_on_time(self, key: AttemptKey) -> bool:
        """Whether a second routing may find no time left for a retry."""
        policies = self.mesh.actors[self.enqueued[key][1]].resiliency.policies
        return any(policy.max_duration is not None for policy in policies.values())

    def _counting_for(self, key: AttemptKey) -> frozenset[tuple[str, ...]]:
        return frozenset().union(*(self._counting(run) for run in self._runs_of[key]))

    def _counting(self, run: Run) -> frozenset[tuple[str, ...]]:
        """The trails of all frames in the results that count."""
        item = self.items.get((f"RUN#{run.actor}", f"{run.number:010d}"), {})
        if item.get("source", {"S": "none"})["S"] == "none":
            return frozenset()
        resident = int(item.get("place_run", {"N": "0"})["N"])
        place = f"{resident:010d}/batches/{int(item['place_batch']['N']):06d}" if resident else f"{run.number:010d}"
        folder = f"runs/{run.actor}/{place}/attempts/{item['attempt']['S']}/"
        if item["source"]["S"] == "commit":
            parts = [part["file"] for part in json.loads(self.objects[f"{folder}commit.json"])["parts"]]
        else:
            parts = [f"part-{number:06d}.jsonl" for number in range(int(item["parts"]["N"]))]
        return frozenset().union(*(self._trails_in(folder + part) for part in parts))

    def _trails_in(self, key: str) -> frozenset[tuple[str, ...]]:
        if key not in self._trails:
            candidates = [json.loads(line).get("payload") for line in self.objects[key].splitlines()]
            self._trails[key] = frozenset(tuple(one["trail"]) for one in candidates if isinstance(one, dict))
        return self._trails[key]

    # --- at rest ---------------------------------------------------------------------------------------------------

    def is_pending(self, envelope: ObservedEnvelope) -> bool:
        """Whether this attempt at this hop has become pending."""
        return (envelope.id, envelope.generation, len(envelope.prev), envelope.attempt) in self.enqueued

    @property
    def is_quiet(self) -> bool:
        """Whether no envelope is pending and every run is closed."""
        return not any(pk.startswith(("PENDING#", "OPEN#", "RESIDENT#")) for pk, _ in self.items)

    def problems(self) -> Iterator[str]:
        """The violations of the final state."""
        for pk, sk in self.items:
            if pk.startswith(("PENDING#", "OPEN#", "RESIDENT#")):
                yield f"{pk} {sk} is left"
        for run in self.runs.values():
            if self._state(run) != "closed":
                yield f"{run.name} is {self._state(run)}"
            yield from self._unsent_frames(run)
        for key in self.enqueued:
            if not self._runs_of[key] and key not in self.stopped:
                yield f"{key} was pending, and was in no run"

    def _unsent_frames(self, run: Run) -> Iterator[str]:
        """The frames of results that count but were never sent."""
        for trail in self._counting(run):
            whose = {key for key, _ in run.members if self.enqueued[key][0].trail == trail[:-1]}
            if frame_index(trail) == 0 and any(self.has_passed_pause(self.enqueued[key][0]) for key in whose):
                continue  # a late copy at or below a pause sends no frame 0 (`protocol §11`)
            if whose and not whose & (self.stopped | self.failed) and trail not in self.sent_trails:
                yield f"the frame {trail} is a result of {run.name} that counts, and it never left"

    def _waiting(self, actor: str) -> Iterator[tuple[AttemptKey, int]]:
        for (pk, _), item in self.items.items():
            if pk.startswith(f"PENDING#{actor}#"):
                member = json.loads(item["member"]["B"])
                yield _attempt_key(member), member.get("returned_by", 0)

    def _state(self, run: Run) -> str:
        item = self.items.get((f"RUN#{run.actor}", f"{run.number:010d}"))
        return str(item["state"]["S"]) if item is not None else "not on record"

    def _resident_of(self, name: str) -> int:
        """The number of the resident run that a run is placed in; 0 if it is in none."""
        run = next((run for run in self.runs.values() if run.name == name), None)
        item = self.items.get((f"RUN#{run.actor}", f"{run.number:010d}"), {}) if run is not None else {}
        return int(item.get("place_run", {"N": "0"})["N"])

    def _is_committed(self, run: Run) -> bool:
        item = self.items.get((f"RUN#{run.actor}", f"{run.number:010d}"), {})
        return item.get("source", {"S": ""})["S"] == "commit"

    def _is_resolved(self, run: Run) -> bool:
        return "source" in self.items.get((f"RUN#{run.actor}", f"{run.number:010d}"), {})


def _attempt_key(member: Mapping[str, Any]) -> AttemptKey:
    return member["id"], member.get("generation", 0), member["position"], member["attempt"]


def _results_of(item: Item) -> str:
    """The source and the attempt of a run's results; empty before they are resolved."""
    return str(item.get("source", {"S": ""})["S"] + item.get("attempt", {"S": ""})["S"])


def _as_received(envelope: ObservedEnvelope) -> ObservedEnvelope:
    """The stamped envelope with the phase it had at its arrival."""
    phase = "retrying" if envelope.status.get("attempt", 1) > 1 else "pending"
    return replace(envelope, status={**envelope.status, "phase": phase})


def _is_stop(envelope: ObservedEnvelope) -> bool:
    """Whether an envelope was canceled or timed out, which may happen between two routings."""
    return envelope.phase == "canceled" or envelope.status.get("reason") == "Timeout"
