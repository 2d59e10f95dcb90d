"""The dispatcher: forms job runs from pending envelopes and starts each of them once (`protocol §10`).

The manifest forms a run. A dispatcher finishes the latest run before it forms the next one: it deletes the run's pending
envelopes and starts the run. So no envelope is in two manifests, and no run is forgotten. If EMR Serverless is throttled or
at capacity, the dispatcher sends a delayed request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.function.nack import BlockedError
from asya.heavy import run_formation
from asya.heavy.aws.dispatch_requests import DispatchRequest, decode_request
from asya.heavy.aws.emr_serverless import WAITING_STATES
from asya.heavy.aws.run_records import RunRecord
from asya.heavy.capacity import POLL_SECONDS
from asya.heavy.lambdas.resident_runs import Placement
from asya.heavy.lambdas.run_start import MissingManifestError, RunStart
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.results import check_before_run, is_too_late_to_start
from asya.heavy.run_sizes import size_of, sizes_of
from asya.heavy.statements import REQUEST
from asya.protocol.events import TaskEvent
from asya.protocol.job_runs import Manifest, Member
from asya.protocol.mesh_table import Actor
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.metrics_and_spans import record_diversion
from asya.sidecar.lambdas.problems import problem_report
from asya.tasks.reporting import reports

# Three receives of a blocked message outlast a deployment: 5, 10 and 15 minutes. The fourth one gives the request up.
LAST_RECEIVE = 4


class NewActorError(BlockedError):
    """A request names a heavy actor that a deployment has added, but the dispatcher is not deployed yet."""


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A member that is left out of the run.

    Attributes:
        receipts: of the messages that end it.
        last: the report that a problem of its hop would repeat.
        url: where to report; None without reporting.
    """

    member: Member
    receipts: list[Receipt]
    last: TaskEvent
    url: str | None


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Handles dispatch requests, one at a time."""

    services: SparkServices

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Processes one batch of requests and reports partial batch failures."""
        base = self.services.base
        dispatched: set[str] = set()
        try:
            return base.worker.process(records(event), lambda record: self._handle(record, dispatched))
        finally:
            base.telemetry.flush()

    def _handle(self, record: Record, dispatched: set[str]) -> list[Receipt]:
        log = self.services.base.telemetry.log
        try:
            request = decode_request(record.arrival.body)
        except (ValueError, RecursionError) as error:
            log.warning("malformed dispatch request dropped", problem=str(error), message_id=record.message_id)
            return []
        refused = self.services.base.admission.problem(record.arrival, REQUEST, about=request.actor)
        if refused is not None:
            # The reconciler finds envelopes without a request, so nothing waits for this one.
            sender = record.arrival.sender
            log.warning("dispatch request dropped", problem=refused, sender=sender, message_id=record.message_id)
            return []
        spec = self.services.heavy_actor(request.actor)
        if spec is None:
            # The functions of a new actor are deployed before the dispatcher. Only a removed actor stays unknown.
            if record.arrival.receive_count < LAST_RECEIVE:
                raise NewActorError(f"this version of the mesh has no heavy actor {request.actor!r}")
            log.error("dispatch request for an unknown heavy actor dropped", requested=request.actor)
        elif request.actor not in dispatched and self.dispatch(request, spec):
            # Later envelopes have their own request, because the flag was cleared before the read.
            dispatched.add(request.actor)
        return []

    def dispatch(self, request: DispatchRequest, spec: Actor) -> bool:
        """Finishes the actor's latest run, then forms and starts the next one.

        The order makes this safe: clear the flag, finish the latest run, read the pending envelopes, write the manifest.

        Returns:
            Whether the actor's flag was cleared; if not, the request that it stands for is still on its way.
        """
        services, actor = self.services, request.actor
        is_flag_clear = services.requests.accept(request, now=services.now())
        if not self._form_and_start(actor, spec):
            return is_flag_clear
        if is_flag_clear:
            services.requests.ensure(actor, 0, now=services.now())
        else:
            services.requests.expedite(actor, now=services.now())
        return is_flag_clear

    def _form_and_start(self, actor: str, spec: Actor) -> bool:
        """Forms and starts a run; returns whether more envelopes are ready for the next one."""
        services = self.services
        number = services.records.latest(actor)
        record = services.records.get(actor, number) if number else None
        unfinished = record is not None and record.state == "formed"
        if (
            unfinished
            and record is not None
            and not RunStart(services).start(
                record, spec, lambda: self._manifest(actor, number, record.manifest_digest)[0]
            )
        ):
            return False
        selection = self._select(actor, spec)
        if selection.members and self._has_max_runs(actor, spec):
            return False
        if selection.members and self._should_wait_for_more(actor, spec, selection, record):
            return False
        members = self._runnable(actor, spec, selection.members)
        formed, more = self._form(actor, spec, number + 1, members), selection.more
        if formed is not None:
            manifest, digest = formed
            # Another dispatcher formed this run of other members, so envelopes may be left.
            more = more or manifest.members != tuple(members)
            opened = services.records.open(manifest, now=self.services.now(), digest=digest)
            if reached := max((member.round for member in manifest.members), default=0):
                services.rounds.reach(actor, reached)
            if opened.state == "formed" and not RunStart(services).start(opened, spec, lambda: manifest):
                return False
        return more

    def _select(self, actor: str, spec: Actor) -> run_formation.Selection:
        """Selects the envelopes of the next run; none while the actor is drained.

        The request's flag was cleared before, so the end of a drain sees that no request is on its way.
        """
        if self.services.drains.get(actor) is not None:
            self.services.base.telemetry.log.info("actor drained; no run formed", requested=actor)
            return run_formation.Selection((), more=False)
        closed, job = (
            cache(lambda returned_by: self._is_closed(actor, returned_by)),
            run_formation.spark_job(actor, spec),
        )
        return run_formation.select(
            self.services.pending.members(actor),
            run_formation.batch_of(actor, spec).size,
            isolation=job.isolation,
            size_name=(lambda member: size_of(member, job)) if sizes_of(job) else None,
            is_closed=closed,
        )

    def _form(self, actor: str, spec: Actor, number: int, members: Sequence[Member]) -> tuple[Manifest, str] | None:
        """Forms run `number` of these members, or reads the manifest that another dispatcher wrote first.

        Returns:
            The manifest and its digest; None if there is neither.
        """
        manifests = self.services.manifests
        if members:
            manifest = run_formation.form(
                members,
                namespace=self.services.settings.namespace,
                actor=actor,
                spec=spec,
                number=number,
                now=self.services.now(),
                max_children=self.services.settings.table.max_children,
            )
            digest = manifests.create(manifest)
            if digest is not None:
                return manifest, digest
        elif not manifests.exists(actor, number):
            return None
        return self._manifest(actor, number)

    def _should_wait_for_more(
        self, actor: str, spec: Actor, selection: run_formation.Selection, latest: RunRecord | None
    ) -> bool:
        """Whether the next run is not full, and its window is open or the previous run still waits for capacity.

        It does not wait if a resident run is idle. If it waits, a delayed request is on its way. The start of the previous run
        expedites it if that one waits.
        """
        batch, job = run_formation.batch_of(actor, spec), run_formation.spark_job(actor, spec)
        tenant, size = run_formation.driver_tenant(selection.members, job), size_of(selection.members[0], job)
        is_full = selection.more or len(selection.members) >= batch.size
        if is_full or Placement(self.services).has_idle(actor, spec, size, tenant):
            return False
        now = self.services.now()
        left = run_formation.window_left(selection, batch, now)
        if left:
            self.services.requests.ensure(actor, left, now=now, pending=len(selection.members))
            return True
        if latest is None or latest.state != "started" or not latest.job_run_id:
            return False
        try:
            state = self.services.job_runs.state(latest.job_run_id).state
        except (ClientError, BotoCoreError) as error:
            self.services.base.telemetry.log.info(
                "state of the latest run unknown; forming the next run", problem=str(error)
            )
            return False
        if state not in WAITING_STATES:
            return False
        Placement(self.services).make_room()
        self.services.requests.ensure(actor, POLL_SECONDS, now=self.services.now(), for_capacity=True)
        return True

    def _is_closed(self, actor: str, number: int) -> bool:
        """Whether all returned members of a run are pending; its close sends another request."""
        record = self.services.records.get(actor, number)
        return record is None or record.state == "closed"

    def _manifest(self, actor: str, number: int, digest: str = "") -> tuple[Manifest, str]:
        found = self.services.manifests.read_with_digest(actor, number, digest)
        if found is None:
            raise MissingManifestError(f"run {number} of {actor} has no manifest in {self.services.settings.bucket}")
        return found

    def _runnable(self, actor: str, spec: Actor, members: Sequence[Member]) -> list[Member]:
        """The members that may run; sends canceled and late ones to x-sink."""
        base, states = self.services.base, self.services.states(members)
        runnable: list[Member] = []
        stopped: list[_Stopped] = []
        for member in members:
            deadline = parse_time(member.deadline_at) if member.deadline_at else None
            state = states.get(member.id)
            is_canceled = state is not None and state.is_canceled
            if not is_canceled and not is_too_late_to_start(deadline, self.services.now()):
                runnable.append(member)
                continue
            hop = self.services.hop(actor, spec, member)
            diversion = check_before_run(hop, state, now=self.services.now(), outages=base.outages_since)
            if diversion is None:
                runnable.append(member)
                continue
            record_diversion(base, diversion.why, actor=actor)
            base.telemetry.log.info("envelope left out of the run", why=diversion.why, envelope_id=member.id)
            receipts = [base.outbox.send(delivery) for delivery in diversion.deliveries]
            last = reports.processing(hop, now=self.services.now())
            stopped.append(_Stopped(member, receipts, last, base.report_url(hop.envelope)))
        self._flush_stopped(actor, stopped)
        return runnable

    def _flush_stopped(self, actor: str, stopped: Sequence[_Stopped]) -> None:
        if not stopped:
            return
        self.services.base.outbox.flush()
        self._report_problems(stopped)
        for receipt in (receipt for each in stopped for receipt in each.receipts):
            if receipt.error is not None:
                raise receipt.error
            self.services.base.telemetry.count("Sent", by=("kind", receipt.kind), actor=actor)
        self.services.pending.remove(actor, [each.member for each in stopped])

    def _report_problems(self, stopped: Sequence[_Stopped]) -> None:
        """Reports which envelopes a refusal of a queue holds up."""
        base = self.services.base
        for each in stopped:
            errors = [receipt.error for receipt in each.receipts if receipt.error is not None]
            event = problem_report(each.last, errors[0], now=self.services.now()) if errors else None
            if event is not None and each.url is not None:
                base.progress.report(each.url, event)
        base.progress.flush()

    def _has_max_runs(self, actor: str, spec: Actor) -> bool:
        """Whether the actor may have no further run now; then a delayed request is on its way."""
        services, most = self.services, run_formation.spark_job(actor, spec).max_runs
        if most is None:
            return False
        records = (services.records.get(actor, number) for number in services.records.open_numbers(actor))
        if sum(record is not None and RunStart(services).is_at_work(record) for record in records) < most:
            return False
        services.requests.ensure(actor, POLL_SECONDS, now=services.now(), for_capacity=True)
        return True
