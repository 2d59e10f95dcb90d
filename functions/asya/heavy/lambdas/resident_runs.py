"""Gives formed runs to resident ones, and follows their commits and ends (`protocol §10.resident`)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from botocore.exceptions import ClientError

from asya.heavy.aws.completion_messages import JobRunEvent
from asya.heavy.aws.emr_serverless import UNKNOWN_RUN, BusyError, JobRunState, is_unknown_run
from asya.heavy.aws.resident_runs import ResidentRun
from asya.heavy.aws.run_records import RunRecord, job_run_number
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.run_formation import driver_tenant, may_linger, spark_job
from asya.heavy.run_request import fingerprint
from asya.heavy.run_sizes import sized_jobs
from asya.protocol.job_runs import CloseReason, Manifest, Place, RunFolder, parse_run_id, run_id
from asya.protocol.mesh_table import Actor

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Placement:
    """The resident runs as the dispatcher and the completion see them."""

    services: SparkServices

    def has_idle(self, actor: str, spec: Actor, size: str, tenant: str | None = None) -> bool:
        """Whether a resident run of this size can take a batch now: one of this tenant, or any for None."""
        return any(tenant is None or resident.tenant == tenant for resident in self._idle(actor, spec, size))

    def start(self, manifest: Manifest, spec: Actor) -> bool:
        """Gives a formed run to a resident one; idempotent.

        Returns:
            False if there is none for it, so that it needs a job run of its own.
        """
        for _ in range(_TRIES):
            place = self._place(manifest, spec)
            if place is None:
                return False
            if self._hand_over(manifest, place):
                return True
        return False

    def place_alone(self, manifest: Manifest) -> bool:
        """Decides that a run gets a job run of its own; returns False if a resident one has it."""
        services = self.services
        if services.residents.place(manifest.actor, manifest.number, None):
            return True
        record = services.records.get(manifest.actor, manifest.number)
        return record is None or record.place is None

    def close_next(self, record: RunRecord, reason: CloseReason) -> bool:
        """Lets the job run of a run take no further batch; call it before the job run is canceled.

        Returns:
            False if the job run has a further batch already, so that it must not be canceled because of this run.
        """
        if not record.lingers and record.place is None:
            return True
        number, batch = job_run_number(record), record.place.batch if record.place else 0
        if not self.services.batches.close(record.actor, Place(number, batch + 1), reason):
            return False
        self.services.residents.close(record.actor, number)
        return True

    def make_room(self) -> None:
        """Closes the resident run of the mesh that has been idle for longest, because another run waits for workers."""
        services = self.services
        actors = services.settings.table.actors
        lingering = [name for name, spec in actors.items() if spec.spark is not None and spec.spark.linger]
        idle = [(since, resident) for actor in lingering for since, resident in self._present(actor)]
        if idle:
            _, resident = min(idle, key=lambda pair: pair[0])
            self._close(resident, "room")

    def _place(self, manifest: Manifest, spec: Actor) -> Place | None:
        """The place of a run in a resident one, decided now or before; None if there is none so far."""
        services, actor, number = self.services, manifest.actor, manifest.number
        record = services.records.get(actor, number)
        if record is not None and record.is_placed:
            return record.place
        if not manifest.linger:
            return None
        job = spark_job(actor, spec)
        if not may_linger(manifest.members, job):
            return None  # the actor's isolation has changed since it was formed
        tenant = driver_tenant(manifest.members, job)
        for resident in self._idle(actor, spec, manifest.size):
            if resident.tenant == tenant and services.residents.place(actor, number, resident.next):
                return resident.next
        return None

    def _hand_over(self, manifest: Manifest, place: Place) -> bool:
        """Writes the batch; returns False if the resident run was closed before."""
        services, actor, number = self.services, manifest.actor, manifest.number
        resident = next((each for each in services.residents.all(actor) if each.number == place.number), None)
        # Without its item the job run has ended. If the batch was written before that, it is settled as any other.
        has_ended = resident is None and services.batches.close(actor, place, "ended")
        if has_ended or not services.batches.fill(manifest, place):
            services.residents.displace(actor, number, place)
            return False
        job_run_id = resident.job_run_id if resident is not None else self._job_run_id(actor, place)
        services.records.mark_started(actor, number, job_run_id)
        # No event says that the batch is at work. The watch that this starts looks whether it was taken.
        services.notify_completion(manifest.run_id, job_run_id=job_run_id, state="RUNNING", details="")
        return True

    def _job_run_id(self, actor: str, place: Place) -> str:
        """The id of a job run that has ended, so that its item is gone.

        Raises:
            LookupError: there is no record of it.
        """
        record = self.services.records.get(actor, place.number)
        if record is None or not record.job_run_id:
            raise LookupError(f"run {place.number} of {actor} has a batch, but no record of its job run")
        return record.job_run_id

    def _idle(self, actor: str, spec: Actor, size: str) -> list[ResidentRun]:
        """The idle resident runs that a batch of a size may be given to, the one that has been idle for longest first.

        An idle one with other code or settings than those of this deployment, in any size, is closed.
        """
        services, job = self.services, spark_job(actor, spec)
        if not job.linger:
            return []
        current = {name: fingerprint(each, services.deployment, spec.secrets) for name, each in sized_jobs(job)}
        found = []
        for since, resident in self._present(actor):
            if resident.fingerprint == current.get(size):
                found.append((since, resident))
            elif resident.fingerprint not in current.values():
                self._close(resident, "changed")
        return [resident for _, resident in sorted(found, key=lambda pair: pair[0])]

    def _present(self, actor: str) -> list[tuple[str, ResidentRun]]:
        """The resident runs that wait for their next batch, with the times since when."""
        present = []
        for resident in self.services.residents.all(actor):
            if resident.is_closed:
                continue
            presence = self.services.batches.presence(actor, resident.number, now=self.services.now())
            if presence is not None and presence.batch == resident.next.batch:
                present.append((presence.since, resident))
        return present

    def _close(self, resident: ResidentRun, reason: CloseReason) -> None:
        if self.services.batches.close(resident.actor, resident.next, reason):
            self.services.residents.close(resident.actor, resident.number)
            self.services.base.telemetry.log.info(
                "resident run closed", job_run_id=resident.job_run_id, why=reason, requested=resident.actor
            )


# Polls of a batch, each 4 s after the one before, until its job run is asked for, and until the job run counts as stuck.
_TAKEN_TURN = 3
_STUCK_TURN = 15
# A driver ends a batch at its limit by itself; one that has not done so after this time is stuck.
GRACE = timedelta(seconds=60)
# The beginning of the name of an attempt.
_ATTEMPT_TIME = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True)
class ResidentRuns:
    """The resident runs as the completion and the reconciler see them."""

    services: SparkServices

    def committed(self, folder: RunFolder, key: str) -> RunRecord | None:
        """The record of the run that this commit is of; None if there is no such commit, or its job run does not linger."""
        commit = self.services.results.commit(folder, key.split("/")[-2])
        if commit is None:
            return None
        batch_run = parse_run_id(commit.run_id, self.services.settings.namespace)
        run = (folder.actor, folder.number) if folder.place is None else batch_run
        record = self.services.records.get(*run) if run is not None else None
        # The job writes its commits, and may name any run in them.
        if record is None or record.folder.prefix != folder.prefix or not (record.lingers or record.place is not None):
            return None
        return record

    def end(self, record: RunRecord, event: JobRunEvent) -> RunRecord:
        """Settles what the job run of a resident run leaves when it has ended.

        Its item is removed, so that it gets no batch. The completion is told of the end of the batch that is open.

        Returns:
            The record with the end of the job run; unchanged if that has not ended, or is another one.

        Raises:
            botocore.exceptions.ClientError: the job run cannot be read.
        """
        services, actor, number = self.services, record.actor, record.number
        job_run_id = record.job_run_id or event.job_run_id
        if not job_run_id:
            return record
        name = run_id(services.settings.namespace, actor, number)
        state = self.state(job_run_id, name)
        if state.name != name or not state.is_terminal:
            return record
        services.records.record_state(
            actor,
            number,
            state.state,
            details=services.explained(record, state.details),
            usage=state.usage,
            application_id=event.application_id,
        )
        services.residents.remove(actor, number)
        for batch_run in services.records.open_numbers(actor):
            batch = services.records.get(actor, batch_run)
            if batch is not None and batch.place is not None and batch.place.number == number:
                services.notify_completion(
                    run_id(services.settings.namespace, actor, batch_run),
                    job_run_id=job_run_id,
                    state=state.state,
                    details=services.explained(record, state.details),
                )
        for heavy_actor in services.heavy_actors():
            services.requests.expedite(heavy_actor, now=services.now())
        return services.records.get(actor, number) or record

    def state(self, job_run_id: str, name: str) -> JobRunState:
        """The state of a job run; one that EMR Serverless no longer knows has failed."""
        try:
            return self.services.job_runs.state(job_run_id)
        except ClientError as error:
            if not is_unknown_run(error):
                raise
            return JobRunState(job_run_id, name, "FAILED", UNKNOWN_RUN)

    def watch(self, record: RunRecord, manifest: Manifest, turn: int) -> None:
        """Finds a lost notification of a commit, a batch that is not taken, and one that takes too long.

        Args:
            turn: the number of this poll.

        Raises:
            botocore.exceptions.ClientError, BusyError: the next poll tries again.
        """
        if record.resolution is not None or not (record.lingers or record.place is not None):
            return
        services, attempts = self.services, self.services.results.attempts(record.folder)
        committed = services.results.committed_attempt(record.folder)
        if committed is not None:
            services.notify_commit(record.folder, committed)
        elif attempts:
            started_at = _started_at(attempts[-1])
            limit = timedelta(minutes=manifest.time_limit) + GRACE
            if started_at is not None and services.now() > started_at + limit:
                self._cancel(record, manifest, "it takes longer than its limit")
        elif record.place is not None and turn >= _TAKEN_TURN:
            self._settle_untaken(record, manifest, turn)

    def sweep(self, resident: ResidentRun) -> None:
        """Tells the completion of the end of a resident job run that no event has told of.

        Raises:
            botocore.exceptions.ClientError: the job run cannot be read.
        """
        services = self.services
        name = run_id(services.settings.namespace, resident.actor, resident.number)
        state = self.state(resident.job_run_id, name)
        if state.is_terminal:
            services.base.telemetry.log.warning("resident run ended without an event", run_id=name, state=state.state)
            services.notify_completion(name, job_run_id=state.job_run_id, state=state.state, details=state.details)

    def _settle_untaken(self, record: RunRecord, manifest: Manifest, turn: int) -> None:
        """Ends a batch whose job run has ended before it took it, and a job run that takes none."""
        job_run_id = record.job_run_id or ""
        name = run_id(self.services.settings.namespace, record.actor, job_run_number(record))
        state = self.state(job_run_id, name)
        if state.is_terminal:
            self.services.notify_completion(
                manifest.run_id, job_run_id=job_run_id, state=state.state, details=state.details
            )
        elif turn >= _STUCK_TURN:
            self._cancel(record, manifest, "its driver does not take the batch")

    def _cancel(self, record: RunRecord, manifest: Manifest, why: str) -> None:
        if not record.job_run_id or not Placement(self.services).close_next(record, "ended"):
            return
        self.services.base.telemetry.log.warning("resident run canceled", run_id=manifest.run_id, why=why)
        try:
            self.services.job_runs.cancel(record.job_run_id)
        except BusyError as busy:
            self.services.base.telemetry.log.info("job run not canceled yet", problem=str(busy))


def _started_at(attempt: str) -> datetime | None:
    """When an attempt began, as its name says; None for another name."""
    try:
        return datetime.strptime(attempt.partition("-")[0], _ATTEMPT_TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
