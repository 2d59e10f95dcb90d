"""The dispatcher: forms job runs of what is pending and starts them, each once (`protocol §10`).

That a run's manifest exists is what forms it. Whoever comes next, by whatever way, finishes the latest run (its envelopes are
pending no more, EMR Serverless has it) before forming another: so no envelope is ever in two manifests, and no run is
forgotten. Being throttled or at capacity is waiting: the request goes out again, for later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.protocol.job_runs import Manifest, Member
from asya.protocol.mesh_table import Actor
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.metrics import record_diversion
from asya.spark import run_formation
from asya.spark.aws.dispatch_requests import DispatchRequest, decode_request
from asya.spark.aws.emr_serverless import WAITING_STATES, BusyError, ConflictingRunError, RefusedRunError
from asya.spark.aws.run_items import RunRecord
from asya.spark.lambdas.services import SparkServices
from asya.spark.run_request import RunRequestError, run_request
from asya.spark.stopped_envelopes import check_before_run, is_too_late_to_start

# Nobody says how long EMR Serverless remembers a token; after this long a run is looked for by its name first.
TOKEN_LIFETIME = timedelta(hours=1)
# Clocks differ, and a run cannot have been started before it was formed.
CLOCK_MARGIN = timedelta(minutes=5)
# How long to wait for the run before, which has no room yet, if nothing is heard of it.
CAPACITY_SECONDS = 10.0
# A conflict may mean that the application is starting or stopping.
CONFLICT_SECONDS = 30.0


class MissingManifestError(RuntimeError):
    """A run that is on record has no manifest; a person has to look."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Looks after heavy actors, one request at a time."""

    services: SparkServices

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch of requests."""
        base = self.services.base
        seen: set[str] = set()
        try:
            return base.worker.process(records(event), lambda record: self._handle(record, seen))
        finally:
            base.telemetry.flush()

    def _handle(self, record: Record, seen: set[str]) -> list[Receipt]:
        log = self.services.base.telemetry.log
        try:
            request = decode_request(record.arrival.body)
        except ValueError as error:
            log.warning("not a dispatch request; dropped", problem=str(error), message_id=record.message_id)
            return []
        spec = self.services.heavy_actor(request.actor)
        if spec is None:
            log.error("a dispatch request for what is no heavy actor of this mesh; dropped", requested=request.actor)
        elif request.actor not in seen and self.dispatch(request, spec):
            # What became pending since has a request of its own: the flag was down before the reading.
            seen.add(request.actor)
        return []

    def dispatch(self, request: DispatchRequest, spec: Actor) -> bool:
        """Finish the actor's latest run if that is not done; form and start the next one of what is pending.

        The order is what makes it safe: flag down, latest run finished, pending read, manifest written.

        Returns:
            Whether the actor's flag was taken down; if not, a request that it stands for is still on its way.
        """
        services, actor = self.services, request.actor
        flag_down = services.requests.accept(request, now=services.now())
        if not self._form_and_start(actor, spec):
            return flag_down
        if flag_down:
            services.requests.ensure(actor, 0, now=services.now())
        else:
            services.requests.expedite(actor, now=services.now())
        return flag_down

    def _form_and_start(self, actor: str, spec: Actor) -> bool:
        """Whether more is pending that might run at once."""
        services = self.services
        number = services.records.latest(actor)
        record = services.records.get(actor, number) if number else None
        unfinished = record is not None and record.state == "formed"
        # The quota first: a run that has to wait is not read over and over again.
        if unfinished and not (self._may_start(actor) and self._start(self._manifest(actor, number), spec)):
            return False
        closed = cache(lambda earlier: self._is_closed(actor, earlier))
        selection = run_formation.select(services.pending.members(actor), spec.batch.size, is_closed=closed)
        if selection.members and self._should_wait_for_more(actor, spec, selection, record):
            return False
        members = self._runnable(actor, spec, selection.members)
        manifest, more = self._form(actor, spec, number + 1, members), selection.more
        if manifest is not None:
            # What another dispatcher took of the pending is not known here, so look again afterwards.
            more = more or manifest.members != tuple(members)
            if services.records.open(manifest, now=self.services.now()).state == "formed" and not (
                self._may_start(actor) and self._start(manifest, spec)
            ):
                return False
        return more

    def _form(self, actor: str, spec: Actor, number: int, members: Sequence[Member]) -> Manifest | None:
        """Run `number`: of these members, or as another dispatcher was quick to form it and perhaps died of it."""
        manifests = self.services.manifests
        if members:
            namespace, now = self.services.settings.namespace, self.services.now()
            manifest = run_formation.form(members, namespace=namespace, actor=actor, spec=spec, number=number, now=now)
            if manifests.create(manifest):
                return manifest
        elif not manifests.exists(actor, number):
            return None
        return self._manifest(actor, number)

    def _should_wait_for_more(
        self, actor: str, spec: Actor, selection: run_formation.Selection, latest: RunRecord | None
    ) -> bool:
        """Whether the next run had better take more envelopes: EMR Serverless has no room even for the one before it.

        Another look is on its way then, and comes early if that run begins.
        """
        if selection.more or len(selection.members) >= spec.batch.size:
            return False
        if latest is None or latest.state != "started" or not latest.job_run_id:
            return False
        try:
            state = self.services.job_runs.state(latest.job_run_id).state
        except (ClientError, BotoCoreError) as error:
            self.services.base.telemetry.log.info("not known whether there is room; going on", problem=str(error))
            return False
        if state not in WAITING_STATES:
            return False
        self.services.requests.ensure(actor, CAPACITY_SECONDS, now=self.services.now(), for_capacity=True)
        return True

    def _is_closed(self, actor: str, number: int) -> bool:
        """Whether everything that a run gave back is pending; closing it asks for another look."""
        record = self.services.records.get(actor, number)
        return record is None or record.state == "closed"

    def _manifest(self, actor: str, number: int) -> Manifest:
        manifest = self.services.manifests.read(actor, number)
        if manifest is None:
            raise MissingManifestError(f"run {number} of {actor} has no manifest in {self.services.settings.bucket}")
        return manifest

    def _runnable(self, actor: str, spec: Actor, members: Sequence[Member]) -> list[Member]:
        """The members that are to run; the canceled and those without time leave for x-sink."""
        states = self.services.states(members)
        fit: list[Member] = []
        stopped: list[tuple[Member, Receipt]] = []
        for member in members:
            deadline = parse_time(member.deadline_at) if member.deadline_at else None
            state = states.get(member.id)
            is_canceled = state is not None and state.is_canceled
            if not is_canceled and not is_too_late_to_start(deadline, self.services.now()):
                fit.append(member)
                continue
            diversion = check_before_run(self.services.hop(actor, spec, member), state, now=self.services.now())
            if diversion is None:
                fit.append(member)
                continue
            record_diversion(self.services.base, diversion.why, actor=actor)
            self.services.base.telemetry.log.info("left out of the run", why=diversion.why, envelope_id=member.id)
            stopped += [(member, self.services.base.outbox.send(delivery)) for delivery in diversion.deliveries]
        self._flush_stopped(actor, stopped)
        return fit

    def _flush_stopped(self, actor: str, stopped: Sequence[tuple[Member, Receipt]]) -> None:
        if not stopped:
            return
        self.services.base.outbox.flush()
        for _, receipt in stopped:
            if receipt.error is not None:
                raise receipt.error
            self.services.base.telemetry.count("Sent", by=("kind", receipt.kind), actor=actor)
        self.services.pending.remove(actor, [member for member, _ in stopped])

    def _may_start(self, actor: str) -> bool:
        """Whether the account's quota leaves room for a start; if not, another request is on its way."""
        moment = self.services.now()
        wait = self.services.quota.take(now=moment)
        if wait:
            self.services.requests.ensure(actor, wait, now=moment)
        return not wait

    def _start(self, manifest: Manifest, spec: Actor) -> bool:
        """See to it that a run's envelopes are pending no more and that EMR Serverless has it.

        Returns:
            False if it has to wait; another request is on its way then.
        """
        services, actor = self.services, manifest.actor
        services.pending.remove(actor, manifest.members)
        log = services.base.telemetry.log
        try:
            job_run_id = self._start_job_run(manifest, spec)
        except BusyError as busy:
            log.info("the run waits", run_id=manifest.run_id, problem=str(busy), seconds=busy.seconds)
            services.base.telemetry.count("JobRuns", by=("state", "waiting"), actor=actor)
            seconds = busy.seconds * (0.5 + services.base.environment.random())
            services.requests.ensure(actor, seconds, now=self.services.now(), for_capacity=busy.for_capacity)
            return False
        except (RefusedRunError, RunRequestError) as refused:
            log.exception("the run cannot be started; its envelopes fail", run_id=manifest.run_id)
            services.notify_completion(manifest, job_run_id="", state="FAILED", details=str(refused))
            job_run_id = ""
        services.records.mark_started(actor, manifest.number, job_run_id)
        state = "started" if job_run_id else "refused"
        services.base.telemetry.count("JobRuns", by=("state", state), actor=actor)
        services.base.telemetry.measure("EnvelopesPerRun", len(manifest.members), "Count", actor=actor)
        log.info("run started", run_id=manifest.run_id, job_run_id=job_run_id, envelopes=len(manifest.members))
        return True

    def _start_job_run(self, manifest: Manifest, spec: Actor) -> str:
        """EMR Serverless's id of the run, which is started unless it was."""
        job_runs = self.services.job_runs
        request = run_request(manifest, run_formation.spark_job(manifest.actor, spec), self.services.deployment)
        formed = parse_time(manifest.formed_at)
        if self.services.now() - formed > TOKEN_LIFETIME:
            adopted = job_runs.find(manifest.run_id, since=formed - CLOCK_MARGIN)
            if adopted is not None:
                return adopted
        try:
            return job_runs.start(request)
        except ConflictingRunError as conflict:
            adopted = job_runs.find(manifest.run_id, since=formed - CLOCK_MARGIN)
            if adopted is None:
                raise BusyError(str(conflict), seconds=CONFLICT_SECONDS) from conflict
            return adopted
