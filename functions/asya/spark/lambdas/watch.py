"""Looking at a job run while it works: progress to its tasks' records, messages to those who look on (`protocol §10`).

A job reaches S3 only. So the completion looks there every few seconds, by a message that it sends to itself again until the
run is closed: one short invocation a look. Nothing here may fail a message or hold a run up.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from asya.messaging.aws import clients
from asya.messaging.hop import Hop
from asya.protocol.events import PartialEvent
from asya.protocol.job_runs import Manifest, Member, parse_run_id
from asya.protocol.mesh_table import Actor
from asya.protocol.run_progress import HeartbeatRecord, JobPartial, RunNote
from asya.protocol.times import parse_time
from asya.reporting import reports
from asya.spark.aws.run_items import RunRecord
from asya.spark.aws.watch_requests import WatchRequest, send_watch
from asya.spark.lambdas.services import SparkServices

# So many tasks are told at one look; with more of them in a run they are told by turns.
REPORT_LIMIT = 200
# How much longer than its limit a run may be looked at: the service ends it, and its end may be late.
MARGIN = timedelta(minutes=10)
_RECEIVES = 9_999


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Looks at runs."""

    services: SparkServices

    def begin(self, run_id: str, job_run_id: str) -> None:
        """Look at a run from now on."""
        self._send(WatchRequest(run_id, job_run_id))

    def look(self, watch: WatchRequest, message_id: str) -> None:
        """One look, and the next one sent on its way.

        Raises:
            botocore.exceptions.ClientError: if the next one could not be sent; this one is to come again.
        """
        services = self.services
        name = parse_run_id(watch.run_id, services.settings.namespace)
        if name is None or not services.records.claim_turn(*name, watch.turn, message_id):
            return  # somebody else looks at it, or it is long gone
        record, spec = services.records.get(*name), services.heavy_actor(name[0])
        manifest = services.manifests.read(*name)
        if record is None or spec is None or manifest is None:
            return
        seen = watch
        try:
            seen = self._tell(watch, record, spec, manifest)
        except Exception as error:
            services.base.telemetry.log.warning("could not look at a run", exc_info=error, run_id=watch.run_id)
        if record.state != "closed" and self._may_go_on(record, manifest):
            self._send(replace(seen, turn=watch.turn + 1))

    def _may_go_on(self, record: RunRecord, manifest: Manifest) -> bool:
        began = parse_time(record.running_at or record.formed_at)
        return self.services.now() < began + timedelta(minutes=manifest.time_limit) + MARGIN

    def _tell(self, watch: WatchRequest, record: RunRecord, spec: Actor, manifest: Manifest) -> WatchRequest:
        services = self.services
        attempts = services.results.attempts(record.actor, record.number)
        if not attempts:
            return watch
        if attempts[-1] != watch.attempt:
            watch = replace(watch, attempt=attempts[-1], beat=0, said="")
        for name, messages in services.heartbeats.said(record.actor, record.number, watch.attempt, watch.said):
            for said in messages:
                self._pass_on(said, spec, manifest)
            watch = replace(watch, said=name)
        beat = services.heartbeats.beat(record.actor, record.number, watch.attempt)
        if beat is None or beat.beat <= watch.beat or record.state == "closed":
            return watch
        return self._report(replace(watch, beat=beat.beat), beat, record, spec, manifest)

    def _report(
        self, watch: WatchRequest, beat: HeartbeatRecord, record: RunRecord, spec: Actor, manifest: Manifest
    ) -> WatchRequest:
        """Tell the tasks concerned: the one at work, or by turns all that share the run."""
        note = RunNote(
            run_id=watch.run_id,
            job_run_id=watch.job_run_id,
            state=record.job_state or "RUNNING",
            at=beat.at,
            envelopes=len(manifest.members),
            done=beat.done,
            stages=beat.reported_stages(),
        )
        members = manifest.members
        if manifest.shape == "payload":
            concerned = [members[beat.at_work]] if beat.at_work is not None and beat.at_work < len(members) else []
        else:
            start = watch.told_to if watch.told_to < len(members) else 0
            concerned = list(members[start : start + REPORT_LIMIT])
            watch = replace(watch, told_to=start + REPORT_LIMIT)
        # The hop began when the run did; what is told later is told of that beginning.
        began = parse_time(record.running_at or record.formed_at)
        for member in concerned:
            if member.callback is not None:
                hop = self._hop(spec, manifest, member)
                event = reports.with_run(reports.processing(hop, now=began), note)
                self.services.base.progress.report(member.callback, event)
        return watch

    def _pass_on(self, said: JobPartial, spec: Actor, manifest: Manifest) -> None:
        members = manifest.members
        listeners = members[:REPORT_LIMIT] if said.index is None else members[said.index : said.index + 1]
        for member in listeners:
            if member.callback is not None:
                hop = self._hop(spec, manifest, member)
                self.services.base.progress.report(
                    member.callback,
                    PartialEvent(
                        id=member.id,
                        at=said.at,
                        data=said.data,
                        actor=hop.actor,
                        generation=member.generation,
                        position=member.position,
                        attempt=member.attempt,
                        # An attempt may be in several runs, each of which says everything anew.
                        receive=(manifest.number - 1) % _RECEIVES + 1,
                        sequence=said.sequence,
                    ),
                )

    def _hop(self, spec: Actor, manifest: Manifest, member: Member) -> Hop:
        return self.services.hop(manifest.actor, spec, member)

    def _send(self, watch: WatchRequest) -> None:
        settings = self.services.settings
        send_watch(clients.sqs(), settings.queue_url(settings.actor), watch)
