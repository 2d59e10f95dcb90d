"""Gives formed runs to resident ones that are idle, and closes those that are in the way (`protocol §10.resident`)."""

from dataclasses import dataclass

from asya.heavy.aws.hosts import ResidentRun
from asya.heavy.aws.run_items import RunRecord, job_run_number
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.run_formation import spark_job
from asya.heavy.run_request import fingerprint
from asya.protocol.job_runs import CloseReason, Host, Manifest
from asya.protocol.mesh_table import Actor

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Hosting:
    """The resident runs as the dispatcher and the completion see them."""

    services: SparkServices

    def has_idle(self, actor: str, spec: Actor) -> bool:
        """Whether a resident run can take a batch now."""
        return bool(self._idle(actor, spec))

    def start(self, manifest: Manifest, spec: Actor) -> bool:
        """Gives a formed run to a resident one; idempotent.

        Returns:
            False if there is none for it, so that it needs a job run of its own.
        """
        for _ in range(_TRIES):
            host = self._place(manifest, spec)
            if host is None:
                return False
            if self._hand_over(manifest, host):
                return True
        return False

    def place_alone(self, manifest: Manifest) -> bool:
        """Decides that a run gets a job run of its own; returns False if a resident one has it."""
        services = self.services
        if services.hosts.place(manifest.actor, manifest.number, None):
            return True
        record = services.records.get(manifest.actor, manifest.number)
        return record is None or record.host is None

    def close_next(self, record: RunRecord, reason: CloseReason) -> bool:
        """Lets the job run of a run take no further batch; call it before the job run is canceled.

        Returns:
            False if the job run has a further batch already, so that it must not be canceled because of this run.
        """
        if not record.lingers and record.host is None:
            return True
        number, batch = job_run_number(record), record.host.batch if record.host else 0
        if not self.services.batches.close(record.actor, Host(number, batch + 1), reason):
            return False
        self.services.hosts.close(record.actor, number)
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

    def _place(self, manifest: Manifest, spec: Actor) -> Host | None:
        """The place of a run in a resident one, decided now or before; None if there is none so far."""
        services, actor, number = self.services, manifest.actor, manifest.number
        record = services.records.get(actor, number)
        if record is not None and record.is_placed:
            return record.host
        if not manifest.linger:
            return None
        for resident in self._idle(actor, spec):
            if services.hosts.place(actor, number, resident.next):
                return resident.next
        return None

    def _hand_over(self, manifest: Manifest, host: Host) -> bool:
        """Writes the batch; returns False if the resident run was closed before."""
        services, actor, number = self.services, manifest.actor, manifest.number
        resident = next((each for each in services.hosts.all(actor) if each.number == host.number), None)
        # Without its item the job run has ended. If the batch was written before that, it is settled as any other.
        has_ended = resident is None and services.batches.close(actor, host, "ended")
        if has_ended or not services.batches.fill(manifest, host):
            services.hosts.displace(actor, number, host)
            return False
        job_run_id = resident.job_run_id if resident is not None else self._job_run_id(actor, host)
        services.records.mark_started(actor, number, job_run_id)
        # No event says that the batch is at work. The watch that this starts looks whether it was taken.
        services.notify_completion(manifest.run_id, job_run_id=job_run_id, state="RUNNING", details="")
        return True

    def _job_run_id(self, actor: str, host: Host) -> str:
        """The id of a job run that has ended, so that its item is gone.

        Raises:
            LookupError: there is no record of it.
        """
        record = self.services.records.get(actor, host.number)
        if record is None or not record.job_run_id:
            raise LookupError(f"run {host.number} of {actor} has a batch, but no record of its job run")
        return record.job_run_id

    def _idle(self, actor: str, spec: Actor) -> list[ResidentRun]:
        """The idle resident runs that a batch may be given to, the one that has been idle for longest first.

        An idle one with other code or settings than those of this deployment is closed.
        """
        services, job = self.services, spark_job(actor, spec)
        if not job.linger:
            return []
        current = fingerprint(job, services.deployment, spec.secrets)
        found = []
        for since, resident in self._present(actor):
            if resident.fingerprint == current:
                found.append((since, resident))
            else:
                self._close(resident, "changed")
        return [resident for _, resident in sorted(found, key=lambda pair: pair[0])]

    def _present(self, actor: str) -> list[tuple[str, ResidentRun]]:
        """The resident runs that wait for their next batch, with the times since when."""
        present = []
        for resident in self.services.hosts.all(actor):
            if resident.is_closed:
                continue
            presence = self.services.batches.presence(actor, resident.number, now=self.services.now())
            if presence is not None and presence.batch == resident.next.batch:
                present.append((presence.since, resident))
        return present

    def _close(self, resident: ResidentRun, reason: CloseReason) -> None:
        if self.services.batches.close(resident.actor, resident.next, reason):
            self.services.hosts.close(resident.actor, resident.number)
            self.services.base.telemetry.log.info(
                "resident run closed", job_run_id=resident.job_run_id, why=reason, requested=resident.actor
            )
