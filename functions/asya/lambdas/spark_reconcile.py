"""Every few minutes: whatever the heavy path lost on the way is found again (`protocol §10`).

Pending without a request, a manifest without a run, a run whose end no event told of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.lambdas.spark_services import SparkServices, spark_services
from asya.protocol.times import parse_time

# Events come within seconds; a run younger than this is none of our business yet.
YOUNG = timedelta(minutes=2)
# GetJobRun allows ten calls a second for the whole account.
RUNS_AT_ONCE = 100


def handle(_event: Mapping[str, Any], _context: object) -> None:
    """Lambda's entry point: a schedule's tick."""
    Reconciler(spark_services()).sweep()


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Looks after every heavy actor of the mesh."""

    services: SparkServices

    def sweep(self) -> None:
        """One sweep. Trouble with one actor does not keep the others from being looked after."""
        base = self.services.base
        try:
            for actor in self.services.heavy_actors():
                try:
                    self._count_pending(actor)
                    self._request_if_needed(actor)
                    self._complete_ended(actor)
                except (ClientError, BotoCoreError):
                    base.telemetry.log.exception("not reconciled; the next sweep tries again", reconciled=actor)
        finally:
            base.telemetry.flush()

    def _count_pending(self, actor: str) -> None:
        count = self.services.pending.count(actor)
        self.services.base.telemetry.measure("PendingEnvelopes", count, "Count", actor=actor)

    def _request_if_needed(self, actor: str) -> None:
        """Something is pending, or a run is not started yet, and no request is on its way."""
        found, moment = self.services, self.services.now()
        if found.requests.is_on_its_way(actor, now=moment):
            return
        latest = found.records.latest(actor)
        record = found.records.get(actor, latest) if latest else None
        unfinished = record is not None and record.state == "formed"
        if unfinished or found.pending.is_any_waiting(actor) or found.manifests.exists(actor, latest + 1):
            found.base.telemetry.log.warning("a dispatch request was missing", reconciled=actor)
            found.requests.ensure(actor, 0, now=moment)

    def _complete_ended(self, actor: str) -> None:
        """Runs that are over without being closed: their event was lost, or their routing was."""
        found, moment = self.services, self.services.now()
        looked_at = 0
        for number in found.records.open_numbers(actor):
            record = found.records.get(actor, number)
            if record is None or record.state != "started" or moment - parse_time(record.formed_at) < YOUNG:
                continue
            manifest = found.manifests.read(actor, number)
            if manifest is None:
                continue
            if not record.job_run_id:
                found.tell_completion(manifest, job_run_id="", state="FAILED", details="it could not be started")
                continue
            state = found.job_runs.state(record.job_run_id)
            if state.is_terminal:
                found.base.telemetry.log.warning("a run ended unheard", run_id=manifest.run_id, state=state.state)
                found.tell_completion(manifest, job_run_id=state.job_run_id, state=state.state, details=state.details)
            looked_at += 1
            if looked_at == RUNS_AT_ONCE:
                return
