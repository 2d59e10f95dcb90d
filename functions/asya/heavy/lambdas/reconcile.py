"""The reconciler: repairs the heavy path every five minutes (`protocol §10`).

It finds pending envelopes without a request, manifests without a run, and ended runs without an event.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from asya.heavy.aws.emr_serverless import UNKNOWN_RUN, JobRunState, is_unknown_run
from asya.heavy.aws.run_files import ManifestError
from asya.heavy.aws.run_records import RunRecord
from asya.heavy.capacity import EXECUTOR_WAIT, run_delay
from asya.heavy.lambdas.resident_runs import ResidentRuns
from asya.heavy.lambdas.services import SparkServices
from asya.protocol.times import parse_time

# Events arrive within seconds, and no run ends sooner; a query about a younger run would be wasted.
MIN_AGE = timedelta(seconds=20)
# An account may call GetJobRun 10 times per second; a sweep makes 5 calls per second and leaves the rest to others.
RUNS_PER_SWEEP = 100
RUNS_BETWEEN_PAUSES = 5


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Sweeps over all heavy actors of the mesh."""

    services: SparkServices

    def sweep(self) -> None:
        """Runs one sweep; an error with one actor does not affect the others."""
        base, permits = self.services.base, self._permits()
        complete = True
        try:
            for actor in self.services.heavy_actors():
                try:
                    self._count_pending(actor)
                    self._request_if_needed(actor)
                    records = self._open_runs(actor)
                    self._complete_ended(records, permits)
                    self._end_residents(actor, permits)
                    self._measure_runs(actor, records)
                except (ClientError, BotoCoreError):
                    complete = False
                    base.telemetry.log.exception("actor not reconciled; the next sweep retries", reconciled=actor)
            if complete:
                base.finish_sweep()
        finally:
            base.telemetry.flush()

    def _count_pending(self, actor: str) -> None:
        count = self.services.pending.count(actor)
        if count:
            self.services.base.telemetry.measure("PendingEnvelopes", count, "Count", actor=actor)

    def _request_if_needed(self, actor: str) -> None:
        """Sends a request if envelopes or an unstarted run wait without one."""
        services, now = self.services, self.services.now()
        if services.requests.is_requested(actor, now=now):
            return
        latest = services.records.latest(actor)
        record = services.records.get(actor, latest) if latest else None
        unfinished = record is not None and record.state == "formed"
        if unfinished or self._has_runnable(actor) or services.manifests.exists(actor, latest + 1):
            services.base.telemetry.log.warning("missing dispatch request sent", reconciled=actor)
            services.requests.ensure(actor, 0, now=now)

    def _has_runnable(self, actor: str) -> bool:
        """Whether envelopes wait for a run; those of a drained actor wait for the end of the drain."""
        return self.services.drains.get(actor) is None and self.services.pending.has_any(actor)

    def _open_runs(self, actor: str) -> list[RunRecord]:
        """The records of the runs that are not closed."""
        numbers = self.services.records.open_numbers(actor)
        records = (self.services.records.get(actor, number) for number in numbers)
        return [record for record in records if record is not None]

    def _measure_runs(self, actor: str, records: list[RunRecord]) -> None:
        """Measures the waiting and the running runs, and the longest delay among them. Without runs there are no metrics."""
        if not records:
            return
        telemetry, spec, now = self.services.base.telemetry, self.services.heavy_actor(actor), self.services.now()
        running = sum(record.running_at is not None for record in records)
        max_run = timedelta(seconds=spec.spark.max_run) if spec is not None and spec.spark is not None else timedelta()
        delays = [
            run_delay(
                record.waiting_since or record.formed_at,
                record.running_at,
                max_run,
                now,
                has_executor=self._has_executor(record),
            ).total_seconds()
            for record in records
        ]
        telemetry.measure("RunsQueued", len(records) - running, "Count", actor=actor)
        telemetry.measure("RunsRunning", running, "Count", actor=actor)
        telemetry.measure("RunDelay", max(delays), "Seconds", actor=actor)

    def _has_executor(self, record: RunRecord) -> bool:
        """Whether a run has had an executor; so it seems without a heartbeat that says otherwise."""
        if record.running_at is None or self.services.now() - parse_time(record.running_at) > EXECUTOR_WAIT:
            return True
        try:
            attempts = self.services.results.attempts(record.folder)
            heartbeat = self.services.heartbeats.latest(record.folder, attempts[-1]) if attempts else None
        except (ClientError, BotoCoreError) as error:
            self.services.base.telemetry.log.warning("heartbeat of a run not read", exc_info=error, actor=record.actor)
            return True
        return heartbeat is None or heartbeat.executors != 0

    def _complete_ended(self, records: list[RunRecord], permits: Iterator[bool]) -> None:
        """Notifies the completion of ended runs that are not closed."""
        # A random start, so that every run gets its turn when more are open than one sweep queries.
        first = int(self.services.base.environment.random() * len(records))
        for record in records[first:] + records[:first]:
            if record.state != "started":
                continue
            if self.services.now() - parse_time(record.formed_at) >= MIN_AGE and not self._complete_if_ended(
                record, permits
            ):
                return

    def _complete_if_ended(self, record: RunRecord, permits: Iterator[bool]) -> bool:
        """Notifies the completion if a run has ended; returns False if the sweep has no queries left."""
        services = self.services
        try:
            manifest = services.manifests.read(record.actor, record.number, record.manifest_digest)
        except ManifestError:
            # Only an operator can mend it, and the other runs go on.
            services.base.telemetry.log.exception("open run with an unusable manifest", actor=record.actor)
            return True
        if manifest is None:
            services.base.telemetry.log.error("open run without a manifest", actor=record.actor, number=record.number)
            return True
        if not record.job_run_id:
            services.notify_completion(
                manifest.run_id, job_run_id="", state="FAILED", details="EMR Serverless rejected the run"
            )
            return True
        if not next(permits, False):
            return False
        try:
            state = services.job_runs.state(record.job_run_id)
        except ClientError as error:
            if not is_unknown_run(error):
                raise
            state = JobRunState(record.job_run_id, manifest.run_id, "FAILED", UNKNOWN_RUN)
        if state.is_terminal:
            services.base.telemetry.log.warning("run ended without an event", run_id=manifest.run_id, state=state.state)
            services.notify_completion(
                manifest.run_id, job_run_id=state.job_run_id, state=state.state, details=state.details
            )
        elif (record.lingers or record.place is not None) and (
            attempt := services.results.committed_attempt(record.folder)
        ) is not None:
            services.base.telemetry.log.warning("commit without a notification", run_id=manifest.run_id)
            services.notify_commit(record.folder, attempt)
        elif record.running_at is None and self._is_unreported(state):
            # No report and no watch have started for it.
            services.notify_completion(manifest.run_id, job_run_id=state.job_run_id, state=state.state, details="")
        return True

    def _end_residents(self, actor: str, permits: Iterator[bool]) -> None:
        """Notifies the completion of resident runs that have ended without an event."""
        for resident in self.services.residents.all(actor):
            if not next(permits, False):
                return
            ResidentRuns(self.services).sweep(resident)

    def _is_unreported(self, state: JobRunState) -> bool:
        """Whether a run has been `RUNNING` for longer than an event takes to arrive."""
        return state.state == "RUNNING" and state.since is not None and self.services.now() - state.since >= MIN_AGE

    def _permits(self) -> Iterator[bool]:
        """One item for each query of a sweep, with pauses that keep within the account's quota."""
        for count in range(RUNS_PER_SWEEP):
            if count and count % RUNS_BETWEEN_PAUSES == 0:
                self.services.base.environment.sleep(1.0)
            yield True
