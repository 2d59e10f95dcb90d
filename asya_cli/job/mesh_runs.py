"""The job runs of a mesh as an operator reads them: records in the pending table, files in the mesh's bucket."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.operations.aws.job_runs import RunReader
from asya.capabilities.operations.aws.logs import RunLogs
from asya.function.aws.missing_queues import is_missing_queue
from asya.heavy.aws.dispatch_requests import DispatchRequests
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.emr_serverless import EmrServerless
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_files import Heartbeats, Manifests, RunResults
from asya.heavy.aws.run_records import RunRecords
from asya.protocol import names
from asya.protocol.job_runs import parse_run_id, run_id
from asya_cli.aws_errors import aws_errors, deployed_actors, unknown_actor
from asya_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client

    from asya.client.connection import Connection
    from asya.heavy.aws.run_records import RunRecord

_ADVICE = "An operator needs the permissions that docs/how-to/operate.md lists under “Job runs”."
_RECENT = 20


class MeshRuns:
    """The job runs of one mesh, with an operator's credentials.

    Args:
        connection: The mesh.
        options: The options that select it, as typed; errors name commands with them.
    """

    def __init__(self, connection: Connection, options: str = "") -> None:
        self.connection = connection
        self.options = options

    @property
    def namespace(self) -> str:
        """The namespace of the mesh."""
        return self.connection.namespace

    @cached_property
    def records(self) -> RunRecords:
        """The records; reading them needs no retention."""
        return RunRecords(self.connection.dynamodb(), table=self._table, retention=timedelta(0))

    @cached_property
    def drains(self) -> Drains:
        """The drained actors."""
        return Drains(self.connection.dynamodb(), table=self._table)

    @cached_property
    def manifests(self) -> Manifests:
        """The manifests."""
        return Manifests(self.s3, bucket=self.bucket)

    @cached_property
    def results(self) -> RunResults:
        """The results."""
        return RunResults(self.s3, bucket=self.bucket)

    @cached_property
    def logs(self) -> RunLogs:
        """The logs of drivers and executors."""
        return RunLogs(self.s3, self.bucket)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats."""
        return Heartbeats(self.s3, bucket=self.bucket)

    @property
    def reader(self) -> RunReader:
        """All that there is to read about runs."""
        return RunReader(self.namespace, self.records, self.manifests, self.results, self.heartbeats)

    @cached_property
    def s3(self) -> S3Client:
        """The client of the mesh's bucket."""
        return self.connection.s3()

    @cached_property
    def bucket(self) -> str:
        """The mesh's bucket.

        Raises:
            CommandError: The mesh has no heavy actor.
        """
        sqs, name = self.connection.sqs(), names.queue_name(self.namespace, names.COMPLETION)
        try:
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except ClientError as error:
            if not is_missing_queue(error):
                raise
            raise CommandError(f"the mesh {self.namespace!r} has no heavy actor", "Check the namespace.") from error
        return names.bucket_name(self.namespace, url.split("/")[-2], self.connection.region)

    def job_runs(self, record: RunRecord) -> EmrServerless:
        """Return the job runs of a run's application."""
        return EmrServerless(self.connection.emr_serverless(), application_id=record.application_id)

    def application_id(self, record: RunRecord) -> str:
        """Return the application of a run, or that of the actor's last run; empty before the first event of a run."""
        if record.application_id:
            return record.application_id
        latest = islice(self.records.recent(record.actor), _RECENT)
        return next((each.application_id for each in latest if each.application_id), "")

    def architecture(self, record: RunRecord | None) -> str | None:
        """Return the architecture of a run's application; None if unknown."""
        if record is None or not record.application_id:
            return None
        emr = self.connection.emr_serverless()
        try:
            application = emr.get_application(applicationId=record.application_id)["application"]
            return application.get("architecture")
        except (ClientError, BotoCoreError):
            return None

    def read(self, text: str) -> RunRecord:
        """Return the record of a run.

        Raises:
            CommandError: The text is no run id of this mesh, or there is no such run.
        """
        place = parse_run_id(text, self.namespace)
        if place is None:
            raise CommandError(
                f"{text!r} is not a job run of the mesh {self.namespace!r}",
                f"A run id has the form asya.{self.namespace}.ACTOR.NUMBER; the number has ten digits. "
                f"`asya job list{self.options}` shows them.",
                ExitCode.NOT_FOUND,
            )
        record = self.records.get(*place)
        if record is None:
            raise CommandError(
                f"there is no job run {text!r}",
                f"`asya job list{self.options}` shows the runs; the records of old ones expire.",
                ExitCode.NOT_FOUND,
            )
        return record

    def run_id(self, record: RunRecord) -> str:
        """Return the id of a run."""
        return run_id(self.namespace, record.actor, record.number)

    def heavy_actors(self) -> list[str]:
        """Return the heavy actors that ever got an envelope or a drain, in alphabetical order.

        No resource of the mesh says which of its queues belong to heavy actors, so each queue is looked up in the table.
        """
        return [actor for actor in self._actors() if self.is_heavy(actor) or self.drains.get(actor) is not None]

    def is_heavy(self, actor: str) -> bool:
        """Whether an actor ever got an envelope for a run; False also for a heavy actor without any."""
        requests = DispatchRequests(self.connection.dynamodb(), self.connection.sqs(), table=self._table, queue_url="")
        return requests.had_request(actor) or bool(self.records.latest(actor))

    def check_actor(self, actor: str) -> None:
        """Check that the mesh has an actor.

        Raises:
            CommandError: It has none of this name.
        """
        known = self._actors()
        if actor not in known:
            raise unknown_actor(self.namespace, actor, known)

    def pending(self, actor: str) -> int:
        """Return the number of an actor's pending envelopes; counting stops soon after 10,000."""
        return Pending(self.connection.dynamodb(), self.s3, table=self._table, bucket="").count(actor)

    def _actors(self) -> list[str]:
        return deployed_actors(self.connection)

    @property
    def _table(self) -> str:
        return names.table_name(self.namespace, names.PENDING_TABLE)


def run_errors(problem: str) -> AbstractContextManager[None]:
    """Turn an error of AWS in the block into that of a command, which names the permissions of an operator."""
    return aws_errors(problem, _ADVICE)
