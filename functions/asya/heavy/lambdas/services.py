"""The services of the heavy path beside the common ones, created once per process."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from msgspec.structs import replace

from asya.function.aws import clients
from asya.function.aws.settings import Settings, SettingsError, SparkSettings
from asya.function.hop import Arrival, Hop
from asya.heavy.aws.completion_messages import JobRunEvent, encode_commit, encode_event
from asya.heavy.aws.dispatch_requests import DispatchRequests
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.emr_serverless import EmrServerless
from asya.heavy.aws.pending import Pending, TenantRounds
from asya.heavy.aws.resident_runs import Batches, Residents
from asya.heavy.aws.run_files import Heartbeats, Manifests, RunResults
from asya.heavy.aws.run_records import RunRecord, RunRecords
from asya.heavy.aws.start_limits import RunPermits, StartRate
from asya.heavy.run_failures import SPARK_JOB_FAILED, explained
from asya.heavy.run_request import JobDeployment
from asya.heavy.run_sizes import sized
from asya.protocol import names, states
from asya.protocol.codec import decode
from asya.protocol.job_runs import COMMIT_FILE, Member, RunFolder
from asya.protocol.mesh_table import Actor
from asya.protocol.status import Status
from asya.protocol.times import format_time, parse_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.task_state import StateQuery, TaskState


@dataclass(frozen=True)
class SparkServices:
    """The services of the heavy path."""

    base: Services

    def now(self) -> datetime:
        """The current time in UTC."""
        return self.base.now()

    @property
    def settings(self) -> Settings:
        """The settings of this function."""
        return self.base.settings

    @property
    def spark(self) -> SparkSettings:
        """The settings of the Spark application and its jobs.

        Raises:
            SettingsError: if this function has none.
        """
        if self.settings.spark is None:
            raise SettingsError(
                "ASYA_SPARK_APPLICATION_ID is not set, but this function handles job runs; deploy the mesh again"
            )
        return self.settings.spark

    @cached_property
    def pending(self) -> Pending:
        """The pending envelopes."""
        bucket, pause = self.settings.bucket, self.base.environment.sleep
        return Pending(clients.dynamodb(), clients.s3(), table=self._table, bucket=bucket, pause=pause)

    @cached_property
    def requests(self) -> DispatchRequests:
        """The dispatch requests."""
        url = self.settings.queue_url(names.DISPATCH)
        return DispatchRequests(clients.dynamodb(), clients.sqs(), table=self._table, queue_url=url)

    @cached_property
    def rounds(self) -> TenantRounds:
        """The rounds of tenants."""
        return TenantRounds(clients.dynamodb(), table=self._table)

    @cached_property
    def drains(self) -> Drains:
        """The drained actors."""
        return Drains(clients.dynamodb(), table=self._table)

    @cached_property
    def records(self) -> RunRecords:
        """The records of runs."""
        retention = timedelta(seconds=self.settings.table.retention.runs)
        return RunRecords(clients.dynamodb(), table=self._table, retention=retention)

    @cached_property
    def manifests(self) -> Manifests:
        """The manifests of runs."""
        return Manifests(clients.s3(), bucket=self.settings.bucket)

    @cached_property
    def results(self) -> RunResults:
        """The results of runs."""
        return RunResults(clients.s3(), bucket=self.settings.bucket)

    @cached_property
    def residents(self) -> Residents:
        """The resident runs."""
        retention = timedelta(seconds=self.settings.table.retention.runs)
        return Residents(clients.dynamodb(), table=self._table, retention=retention)

    @cached_property
    def batches(self) -> Batches:
        """The batches of resident runs."""
        return Batches(clients.s3(), bucket=self.settings.bucket)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats and partials of runs."""
        return Heartbeats(clients.s3(), bucket=self.settings.bucket)

    @cached_property
    def start_rate(self) -> StartRate:
        """The token bucket for starts."""
        limits = self.settings.table.spark
        return StartRate(
            clients.dynamodb(), table=self._table, per_second=limits.start_per_second, burst=limits.start_burst
        )

    @cached_property
    def run_permits(self) -> RunPermits:
        """The permits of active runs."""
        most = self.settings.table.spark.max_concurrent_runs
        return RunPermits(clients.dynamodb(), table=self._table, most=most)

    @cached_property
    def job_runs(self) -> EmrServerless:
        """The job runs at EMR Serverless."""
        return EmrServerless(clients.emr_serverless(), application_id=self.spark.application_id)

    @cached_property
    def deployment(self) -> JobDeployment:
        """The deployed resources of this mesh's jobs."""
        return JobDeployment(
            bucket=self.settings.bucket,
            data_uri=self.settings.data_uri,
            results_uri=self.settings.results_uri,
            entry_point=self.spark.entry_point,
            py_files=self.spark.py_files,
            jobs=self.spark.jobs,
            packages=self.spark.packages,
            region=self.settings.region,
            role_prefix=self.spark.role_prefix,
            access_policy_prefix=self.spark.access_policy_prefix,
            release=self.settings.table.spark.release,
            managed_logs=self.spark.managed_logs,
        )

    def heavy_actors(self) -> list[str]:
        """The names of all heavy actors, sorted."""
        return sorted(name for name, actor in self.settings.table.actors.items() if actor.kind == "spark")

    def heavy_actor(self, name: str) -> Actor | None:
        """A heavy actor; None if the mesh has no heavy actor of this name."""
        actor = self.settings.table.actors.get(name)
        return actor if actor is not None and actor.kind == "spark" else None

    def hop(self, actor: str, spec: Actor, member: Member) -> Hop:
        """The hop of a member, with the envelope as stamped when it became pending."""
        body = self.pending.body(member)
        arrival = Arrival(body=body, message_id="", sent_at=parse_time(member.admitted_at), size=len(body))
        envelope = decode(body)
        hop = Hop.of(envelope, actor, spec, self.settings.table, arrival)
        return replace(hop, received=replace(envelope, status=member.ended)) if member.ended is not None else hop

    def states(self, members: Sequence[Member]) -> dict[str, TaskState]:
        """The states of the members' tasks by id, without those that the table does not give in time."""
        own = self.settings.gateway_url
        queries = [StateQuery(id=each.id, root_id=each.root_id) for each in members if own and each.report_url == own]
        return self.base.state_queries.ask(queries, self.now())

    def explained(self, record: RunRecord, details: str) -> str:
        """Return the details of the ended job run of a run, with what its exit code means."""
        spec = self.heavy_actor(record.actor)
        job = spec.spark if spec is not None else None
        return explained(details, record.actor, None if job is None else sized(job, record.size), record.size)

    def notify_completion(self, run_id: str, *, job_run_id: str, state: str, details: str) -> None:
        """Sends the completion an event that EMR Serverless did not send."""
        self._send(encode_event(JobRunEvent(self.spark.application_id, job_run_id, run_id, state, details)))

    def notify_commit(self, run: RunFolder, attempt: str) -> None:
        """Sends the completion the notification of a commit that S3 did not send."""
        self._send(encode_commit(self.settings.bucket, f"{run.attempts}{attempt}/{COMMIT_FILE}"))

    def _send(self, body: str) -> None:
        clients.sqs().send_message(QueueUrl=self.settings.queue_url(names.COMPLETION), MessageBody=body)

    @property
    def _table(self) -> str:
        return self.settings.table_name(names.PENDING_TABLE)


def member_of(hop: Hop, report_url: str | None, *, admitted_at: datetime) -> Member:
    """A started hop as a member of a later run, without its envelope."""
    envelope, received = hop.envelope, hop.received.status if hop.received is not None else None
    has_ended = received is not None and received.phase in states.TERMINAL
    return Member(
        id=envelope.id,
        generation=envelope.generation,
        position=envelope.route.position,
        attempt=hop.attempt,
        admitted_at=format_time(admitted_at),
        root_id=envelope.root_id,
        deadline_at=hop.status.deadline_at,
        report_url=report_url,
        was_charged=_was_charged(hop),
        ended=Status(phase=received.phase, reason=received.reason) if received is not None and has_ended else None,
    )


def _was_charged(hop: Hop) -> bool:
    """Whether the attempt before was charged with a failed run; then it runs only with others of its kind."""
    error = hop.status.error
    return hop.attempt > 1 and error is not None and error.type == SPARK_JOB_FAILED
