"""Starts formed runs: as a batch of a resident run, or as a job run of their own within the limits (`protocol §10`)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from asya.heavy import run_formation
from asya.heavy.aws.emr_serverless import TERMINAL_STATES, BusyError, ConflictingRunError, RefusedRunError
from asya.heavy.aws.resident_runs import ResidentRun
from asya.heavy.aws.run_files import ManifestError
from asya.heavy.aws.run_records import RunRecord
from asya.heavy.aws.start_limits import RunPermit
from asya.heavy.capacity import POLL_SECONDS
from asya.heavy.lambdas.cancellation import RunCancellation, UnknownStatesError
from asya.heavy.lambdas.resident_runs import Placement
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.run_request import RunRequestError, fingerprint, run_request
from asya.heavy.run_sizes import sized
from asya.protocol import states
from asya.protocol.job_runs import Manifest, parse_run_id, run_id
from asya.protocol.mesh_table import Actor
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.intake import FRESH_SECONDS

# EMR Serverless does not document how long it remembers a token; later the dispatcher searches the run by name first.
TOKEN_LIFETIME = timedelta(hours=1)
# Clock skew: a run is started after it was formed.
CLOCK_MARGIN = timedelta(minutes=5)
# A conflict can mean that the application starts or stops.
CONFLICT_SECONDS = 30.0


class MissingManifestError(RuntimeError):
    """A recorded run has no manifest; its request becomes a dead letter for an operator."""


@dataclass(frozen=True, slots=True)
class RunStart:
    """Starts runs, each of them once."""

    services: SparkServices

    def start(self, record: RunRecord, spec: Actor, read_manifest: Callable[[], Manifest]) -> bool:
        """Deletes a run's pending envelopes and starts the run; idempotent.

        Args:
            record: of the formed run.
            read_manifest: called only if the run can start now, so that a waiting run is not read repeatedly.

        Returns:
            False if the run must wait; then a delayed request is on its way.
        """
        actor, number = record.actor, record.number
        if self._is_for_resident(record, spec):
            manifest = read_manifest()
            self.services.pending.remove(actor, manifest.members)
            if Placement(self.services).start(manifest, spec):
                self._note_start(manifest, "placed")
                return True
        permit = self._permit(actor, spec, number)
        if permit is None:
            return False
        try:
            manifest = read_manifest()
        except (MissingManifestError, ManifestError):
            self._give_back(permit)
            raise
        if manifest.linger and not Placement(self.services).place_alone(manifest):
            # Another dispatcher has placed it in a resident run meanwhile; that one, or the next request, goes on with it.
            self._give_back(permit)
            self.services.requests.ensure(actor, 0, now=self.services.now())
            return False
        self.services.pending.remove(actor, manifest.members)
        return self._start(manifest, spec, permit)

    def is_at_work(self, record: RunRecord) -> bool:
        """Whether the envelopes of a run may still be at work."""
        return record.state != "closed" and record.resolution is None and self._may_use_application(record)

    def holds_permit(self, name: str) -> bool:
        """Whether the job run of a run may still use the application; a resident one does after its own envelopes."""
        parsed = parse_run_id(name, self.services.settings.namespace)
        record = self.services.records.get(*parsed) if parsed else None
        return record is not None and (
            self._may_use_application(record) if record.is_resident else self.is_at_work(record)
        )

    def _may_use_application(self, record: RunRecord) -> bool:
        if record.state == "formed":
            return self.services.heavy_actor(record.actor) is not None  # only a run of the mesh will start
        if not record.job_run_id or record.job_state in TERMINAL_STATES:
            return False
        return self.services.heavy_actor(record.actor) is not None or not self._has_ended(record.job_run_id)

    def _is_for_resident(self, record: RunRecord, spec: Actor) -> bool:
        """Whether a resident run has this run, or may take it now."""
        if record.is_placed:
            return record.place is not None
        return record.lingers and Placement(self.services).has_idle(record.actor, spec, record.size)

    def _permit(self, actor: str, spec: Actor, number: int) -> RunPermit | None:
        """The permit of a run that the start quota allows to start; None if not, and then a delayed request is on its way."""
        services, now = self.services, self.services.now()
        name = run_id(services.settings.namespace, actor, number)
        priority = run_formation.spark_job(actor, spec).priority
        permit = services.run_permits.take(name, is_active=self.holds_permit, priority=priority, now=now)
        if permit is None:
            services.base.telemetry.log.info("run waits for another one to end", run_id=name)
            services.base.telemetry.count("JobRuns", by=("state", states.WAITING), actor=actor)
            Placement(services).make_room()
            seconds = POLL_SECONDS * (0.5 + services.base.environment.random())
            services.requests.ensure(actor, seconds, now=now, for_capacity=True)
            return None
        wait = services.start_rate.take(now=now)
        if wait:
            services.requests.ensure(actor, wait, now=now)
        return None if wait else permit

    def _give_back(self, permit: RunPermit) -> None:
        """Gives the permit of a run back that EMR Serverless has not accepted; else it might block all others for ever."""
        self.services.run_permits.give_back(permit)

    def _has_ended(self, job_run_id: str) -> bool:
        """Whether the job run of a removed actor has ended; the reconciler does not ask for its state."""
        try:
            return self.services.job_runs.has_ended(job_run_id)
        except (ClientError, BotoCoreError) as error:
            self.services.base.telemetry.log.warning(
                "state of a run unknown; it keeps its permit", job_run_id=job_run_id, problem=str(error)
            )
            return False

    def _start(self, manifest: Manifest, spec: Actor, permit: RunPermit) -> bool:
        """Starts a run's own job run; returns False if the run must wait."""
        services, actor = self.services, manifest.actor
        log = services.base.telemetry.log
        if self._is_canceled(manifest):
            self._end_unstarted(manifest, "CANCELLED", "all its tasks were canceled before it started")
            return True
        try:
            job_run_id = self._start_job_run(manifest, spec, permit)
        except BusyError as busy:
            log.info("run waits for EMR Serverless", run_id=manifest.run_id, problem=str(busy), seconds=busy.seconds)
            services.base.telemetry.count("JobRuns", by=("state", states.WAITING), actor=actor)
            if busy.for_capacity:
                self._give_back(permit)
                Placement(services).make_room()
            seconds = busy.seconds * (0.5 + services.base.environment.random())
            services.requests.ensure(actor, seconds, now=self.services.now(), for_capacity=busy.for_capacity)
            return False
        except (RefusedRunError, RunRequestError) as refused:
            log.exception("run rejected; its envelopes fail", run_id=manifest.run_id)
            self._end_unstarted(manifest, "FAILED", str(refused))
            return True
        if manifest.linger:
            # Before the record: a run that is started is in the list, or has ended.
            self._add_resident(manifest, spec, job_run_id)
        services.records.mark_started(actor, manifest.number, job_run_id)
        self._note_start(manifest, "started", job_run_id)
        return True

    def _end_unstarted(self, manifest: Manifest, state: str, details: str) -> None:
        """End a run without a job run: the completion charges its envelopes, or ends the canceled ones."""
        # The completion believes in it only after the record. The reconciler repeats a lost notification.
        self.services.records.mark_started(manifest.actor, manifest.number, "")
        self.services.notify_completion(manifest.run_id, job_run_id="", state=state, details=details)
        self._note_start(manifest, states.CANCELED if state == "CANCELLED" else "refused")

    def _is_canceled(self, manifest: Manifest) -> bool:
        """Whether a run that has waited is of canceled tasks alone, and no lost answer has started it."""
        formed = parse_time(manifest.formed_at)
        if self.services.now() - formed <= timedelta(seconds=FRESH_SECONDS):
            return False  # the states were read when it was formed
        try:
            is_canceled = RunCancellation(self.services).are_canceled(manifest.members)
            return is_canceled and self.services.job_runs.find(manifest.run_id, since=formed - CLOCK_MARGIN) is None
        except (UnknownStatesError, ClientError, BotoCoreError) as error:
            self.services.base.telemetry.log.info(
                "not known whether a run is canceled; it starts", run_id=manifest.run_id, problem=str(error)
            )
            return False

    def _add_resident(self, manifest: Manifest, spec: Actor, job_run_id: str) -> None:
        services = self.services
        job = sized(run_formation.spark_job(manifest.actor, spec), manifest.size)
        current, tenant = (
            fingerprint(job, services.deployment, spec.secrets),
            run_formation.driver_tenant(manifest.members, job),
        )
        resident = ResidentRun(manifest.actor, manifest.number, job_run_id, current, tenant=tenant)
        services.residents.add(resident, now=services.now())

    def _note_start(self, manifest: Manifest, state: str, job_run_id: str = "") -> None:
        telemetry, members = self.services.base.telemetry, len(manifest.members)
        telemetry.count("JobRuns", by=("state", state), actor=manifest.actor)
        telemetry.measure("EnvelopesPerRun", members, "Count", actor=manifest.actor)
        telemetry.log.info(
            f"run {state}", run_id=manifest.run_id, job_run_id=job_run_id, envelopes=members, size=manifest.size
        )

    def _start_job_run(self, manifest: Manifest, spec: Actor, permit: RunPermit) -> str:
        """Starts the run unless EMR Serverless has it; returns its job run id."""
        job_runs = self.services.job_runs
        job = sized(run_formation.spark_job(manifest.actor, spec), manifest.size)
        request = run_request(manifest, job, self.services.deployment, spec.secrets, spec.access)
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
        except ClientError:
            # Access is denied, or the application is missing: only an operator ends this.
            self._give_back(permit)
            raise
