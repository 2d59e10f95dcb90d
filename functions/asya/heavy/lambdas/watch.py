"""Polls running job runs and reports their progress and partials (`protocol §10`).

A job reaches only S3. So the completion polls S3 every few seconds, by a message that it sends to itself until the run is
closed. Each poll is one short invocation; its errors are logged and never delay a run.
"""

from dataclasses import dataclass
from datetime import timedelta

from msgspec.structs import replace

from asya.function.aws import clients
from asya.function.hop import Hop
from asya.heavy.aws.completion_messages import WatchRequest, send_watch
from asya.heavy.aws.run_records import RunRecord
from asya.heavy.lambdas.resident_runs import ResidentRuns
from asya.heavy.lambdas.services import SparkServices
from asya.protocol.events import PartialEvent
from asya.protocol.job_runs import Manifest, Member, parse_run_id
from asya.protocol.mesh_table import Actor
from asya.protocol.run_progress import HeartbeatRecord, JobPartial, RunNote
from asya.protocol.times import parse_time
from asya.tasks.reporting import reports

# Tasks that one poll reports; the members of a larger run get reports in turns.
REPORT_LIMIT = 200
# Polling continues so long after the run's limit, because EMR Serverless may end the run late.
MARGIN = timedelta(minutes=10)
_RECEIVES = 9_999


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Polls runs."""

    services: SparkServices

    def start(self, run_id: str, job_run_id: str) -> None:
        """Starts to poll a run."""
        self._send(WatchRequest(run_id, job_run_id))

    def poll(self, watch: WatchRequest, message_id: str) -> None:
        """Polls a run once and sends the next request.

        Raises:
            botocore.exceptions.ClientError: if the next request could not be sent; SQS delivers this one again.
        """
        services = self.services
        name = parse_run_id(watch.run_id, services.settings.namespace)
        if name is None or not services.records.claim_turn(*name, watch.turn, message_id):
            return  # another message has this turn, or the record has expired
        record, spec = services.records.get(*name), services.heavy_actor(name[0])
        if record is None or spec is None:
            return
        manifest = services.manifests.read(*name, record.manifest_digest)
        if manifest is None:
            return
        polled = watch
        try:
            polled = self._report_progress(watch, record, spec, manifest)
            ResidentRuns(services).watch(record, manifest, watch.turn)
        except Exception as error:
            services.base.telemetry.log.warning("run not polled", exc_info=error, run_id=watch.run_id)
        if record.state != "closed" and self._is_within_limit(record, manifest):
            self._send(replace(polled, turn=watch.turn + 1))

    def _is_within_limit(self, record: RunRecord, manifest: Manifest) -> bool:
        started_at = parse_time(record.running_at or record.formed_at)
        return self.services.now() < started_at + timedelta(minutes=manifest.time_limit) + MARGIN

    def _report_progress(self, watch: WatchRequest, record: RunRecord, spec: Actor, manifest: Manifest) -> WatchRequest:
        services = self.services
        attempts = services.results.attempts(record.folder)
        if not attempts:
            return watch
        if attempts[-1] != watch.attempt:
            watch = replace(watch, attempt=attempts[-1], beat=0, partials_file="")
        for name, partials in services.heartbeats.partials(record.folder, watch.attempt, watch.partials_file):
            for partial in partials:
                self._report_partial(partial, spec, manifest)
            watch = replace(watch, partials_file=name)
        heartbeat = services.heartbeats.latest(record.folder, watch.attempt)
        if heartbeat is None or heartbeat.beat <= watch.beat or record.state == "closed":
            return watch
        return self._report(replace(watch, beat=heartbeat.beat), heartbeat, record, spec, manifest)

    def _report(
        self, watch: WatchRequest, heartbeat: HeartbeatRecord, record: RunRecord, spec: Actor, manifest: Manifest
    ) -> WatchRequest:
        """Reports to the tasks at work, or in turns to all tasks of a DataFrame run."""
        note = RunNote(
            run_id=watch.run_id,
            job_run_id=watch.job_run_id,
            state=record.job_state or "RUNNING",
            at=heartbeat.at,
            envelopes=len(manifest.members),
            done=heartbeat.done,
            stages=heartbeat.reported_stages(),
            size=record.size,
        )
        members = manifest.members
        if manifest.shape == "payload":
            at_work = dict.fromkeys(heartbeat.at_work)
            recipients = [members[index] for index in at_work if 0 <= index < len(members)][:REPORT_LIMIT]
        else:
            start = watch.next_member if watch.next_member < len(members) else 0
            recipients = list(members[start : start + REPORT_LIMIT])
            watch = replace(watch, next_member=start + REPORT_LIMIT)
        # All reports of a hop carry the time at which its run started.
        started_at = parse_time(record.running_at or record.formed_at)
        for member in recipients:
            if member.report_url is not None:
                hop = self._hop(spec, manifest, member)
                event = reports.with_run(reports.processing(hop, now=started_at), note)
                self.services.base.progress.report(member.report_url, event)
        return watch

    def _report_partial(self, partial: JobPartial, spec: Actor, manifest: Manifest) -> None:
        members = manifest.members
        recipients = members[:REPORT_LIMIT] if partial.index is None else members[partial.index : partial.index + 1]
        for member in recipients:
            if member.report_url is not None:
                hop = self._hop(spec, manifest, member)
                self.services.base.progress.report(
                    member.report_url,
                    PartialEvent(
                        id=member.id,
                        at=partial.at,
                        data=partial.data,
                        actor=hop.actor,
                        generation=member.generation,
                        position=member.position,
                        attempt=member.attempt,
                        # An attempt may be in several runs, and each run repeats its partials.
                        receive=(manifest.number - 1) % _RECEIVES + 1,
                        sequence=partial.sequence,
                    ),
                )

    def _hop(self, spec: Actor, manifest: Manifest, member: Member) -> Hop:
        return self.services.hop(manifest.actor, spec, member)

    def _send(self, watch: WatchRequest) -> None:
        settings = self.services.settings
        send_watch(clients.sqs(), settings.queue_url(settings.actor), watch)
