"""Every few minutes: whatever the heavy path lost on the way is found again (`protocol §10`).

Pending without a request, a manifest without a run, a run whose end no event told of.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol.times import parse_time
from asya.spark.aws.emr_serverless import JobRunState
from asya.spark.aws.run_items import RunRecord
from asya.spark.lambdas.services import SparkServices

# Events come within seconds, and no run ends sooner; asking about younger ones would be for nothing.
MIN_AGE = timedelta(seconds=20)
# GetJobRun allows ten calls a second for the whole account: a sweep takes five at most, and leaves the rest for the next one.
RUNS_PER_SWEEP = 100
RUNS_BETWEEN_PAUSES = 5


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Looks after every heavy actor of the mesh."""

    services: SparkServices

    def sweep(self) -> None:
        """One sweep. Trouble with one actor does not keep the others from being looked after."""
        base, permits = self.services.base, self._permits()
        try:
            for actor in self.services.heavy_actors():
                try:
                    self._count_pending(actor)
                    self._request_if_needed(actor)
                    self._complete_ended(actor, permits)
                except (ClientError, BotoCoreError):
                    base.telemetry.log.exception("not reconciled; the next sweep tries again", reconciled=actor)
        finally:
            base.telemetry.flush()

    def _count_pending(self, actor: str) -> None:
        count = self.services.pending.count(actor)
        self.services.base.telemetry.measure("PendingEnvelopes", count, "Count", actor=actor)

    def _request_if_needed(self, actor: str) -> None:
        """Something is pending, or a run is not started yet, and no request is on its way."""
        services, moment = self.services, self.services.now()
        if services.requests.is_requested(actor, now=moment):
            return
        latest = services.records.latest(actor)
        record = services.records.get(actor, latest) if latest else None
        unfinished = record is not None and record.state == "formed"
        if unfinished or services.pending.has_any(actor) or services.manifests.exists(actor, latest + 1):
            services.base.telemetry.log.warning("a dispatch request was missing", reconciled=actor)
            services.requests.ensure(actor, 0, now=moment)

    def _complete_ended(self, actor: str, permits: Iterator[bool]) -> None:
        """Runs that are over without being closed: their event was lost, or their routing was."""
        numbers = list(self.services.records.open_numbers(actor))
        # Not always from the first on: where many are open for long, the last ones have their turn too.
        first = int(self.services.base.environment.random() * len(numbers))
        for number in numbers[first:] + numbers[:first]:
            record = self.services.records.get(actor, number)
            if record is None or record.state != "started":
                continue
            if self.services.now() - parse_time(record.formed_at) >= MIN_AGE and not self._complete_if_ended(
                record, permits
            ):
                return

    def _complete_if_ended(self, record: RunRecord, permits: Iterator[bool]) -> bool:
        """Tell the completion of a run that is over; False if no more may be asked in this sweep."""
        services = self.services
        manifest = services.manifests.read(record.actor, record.number)
        if manifest is None:
            services.base.telemetry.log.error("an open run has no manifest", actor=record.actor, number=record.number)
            return True
        if not record.job_run_id:
            services.notify_completion(manifest, job_run_id="", state="FAILED", details="it could not be started")
            return True
        if not next(permits, False):
            return False
        try:
            state = services.job_runs.state(record.job_run_id)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            state = JobRunState(record.job_run_id, manifest.run_id, "FAILED", "EMR Serverless knows it no more")
        if state.is_terminal:
            services.base.telemetry.log.warning("a run ended unheard", run_id=manifest.run_id, state=state.state)
            services.notify_completion(manifest, job_run_id=state.job_run_id, state=state.state, details=state.details)
        elif record.running_at is None and self._is_unreported(state):
            # Its tasks have not been told, and nobody looks at how far it is.
            services.notify_completion(manifest, job_run_id=state.job_run_id, state=state.state, details="")
        return True

    def _is_unreported(self, state: JobRunState) -> bool:
        """Whether it has been running for longer than an event takes to come."""
        return state.state == "RUNNING" and state.since is not None and self.services.now() - state.since >= MIN_AGE

    def _permits(self) -> Iterator[bool]:
        """As many as a sweep may ask of EMR Serverless, with pauses that leave the account's quota to others too."""
        for asked in range(RUNS_PER_SWEEP):
            if asked and asked % RUNS_BETWEEN_PAUSES == 0:
                self.services.base.environment.sleep(1.0)
            yield True
