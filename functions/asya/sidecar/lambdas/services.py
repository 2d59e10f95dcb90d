"""The clients and settings of a Lambda function that reads a queue, created once per process."""

import os
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws import clients
from asya.function.aws.claim_check import ClaimCheck
from asya.function.aws.failed_messages import FailedMessages, StartMarks
from asya.function.aws.outage_notes import OutageNotes, merged, words_about
from asya.function.aws.outages import Outage, ServiceHealth
from asya.function.aws.outbox import Outbox
from asya.function.aws.settings import load_settings
from asya.function.aws.telemetry import Telemetry
from asya.function.hop import Arrival, Delivery, given_up_body
from asya.function.lambdas.batch import BatchProcessor
from asya.function.lambdas.function import Function
from asya.function.lambdas.starts import Starts
from asya.protocol import names
from asya.protocol.envelope import Envelope
from asya.protocol.mesh_table import Actor
from asya.senders.lambdas.admission import Admission
from asya.senders.lambdas.wiring import build_admission, build_keys
from asya.senders.task_keys import EntryKeys, MeshKeys
from asya.sidecar.aws.circuit_breaker import Breaker
from asya.sidecar.aws.hop_records import CompletedHops, FrameBuffer, InputArchive
from asya.sidecar.secret_errors import SecretError
from asya.tasks.aws.state_reader import StateQueries, StateReader
from asya.tasks.reporting.aws.gateway_client import CredentialsSource
from asya.tasks.reporting.aws.report_sender import ProgressReporter, ReportSender, RequiredReports
from asya.tasks.reporting.report_messages import allowed_hosts, report_url

if TYPE_CHECKING:
    from asya.sidecar.aws.secrets import Secrets


class QueryNotices(msgspec.Struct, frozen=True):
    """The notices of one function; see `asya.tasks.reporting.aws.state_queries.Notices`."""

    telemetry: Telemetry

    def failed(self, problem: str) -> None:
        """Log the cause once for each pause."""
        self.telemetry.log.warning("pre-flight failed; the hops proceed", problem=problem)

    def skipped(self) -> None:
        """Count a batch that proceeds without a query."""
        self.telemetry.count("PreflightsSkipped")


# The time of a circuit breaker's probe beyond the handler's own timeout.
PROBE_MARGIN_SECONDS = 10.0
# A system function has the limits of an actor without options.
SYSTEM_FUNCTION = Actor(kind="crew")


@dataclass(frozen=True)
class Services(Function):
    """The clients and settings of one function that reads a queue, or runs on a schedule."""

    def finish_sweep(self) -> None:
        """Count a sweep that finished without an error, if anybody reads the count."""
        if self.settings.heartbeats:
            self.telemetry.count("Sweeps")

    @property
    def credentials(self) -> CredentialsSource:
        """What signs the calls of other gateways."""
        source: CredentialsSource = clients.credentials_source()
        return source

    @cached_property
    def admission(self) -> Admission:
        """Decides by the sender of each message what it may bear."""
        return build_admission(self, self.keys)

    @cached_property
    def keys(self) -> EntryKeys | MeshKeys:
        """Checks the keys of what comes, and gives keys to what leaves."""
        return build_keys(self)

    @cached_property
    def claim_check(self) -> ClaimCheck:
        """Stores payloads that are too large for SQS."""
        actor = self.settings.actor
        # Envelopes end here with the references that other actors received.
        reader = None if actor in names.END_ACTORS else actor
        is_bounded = isinstance(self.keys, MeshKeys)
        return ClaimCheck(clients.s3(), self.settings.bucket, reader=reader, is_bounded=is_bounded)

    @cached_property
    def outbox(self) -> Outbox:
        """Sends to the queues of this mesh."""
        return Outbox(clients.sqs(), self.settings.queue_url, self._prepared, threaded=self.environment.is_threaded)

    def _prepared(self, delivery: Delivery) -> Delivery:
        return self.claim_check.offload(self.keys.seal(delivery))

    @cached_property
    def frame_buffer(self) -> FrameBuffer:
        """Stores the frames of buffered hops."""
        return FrameBuffer(clients.s3(), self.settings.bucket, self.settings.actor)

    @cached_property
    def input_archive(self) -> InputArchive:
        """Stores the inputs of hops for replays."""
        return InputArchive(clients.s3(), self.settings.bucket, self.settings.actor)

    @cached_property
    def completed_hops(self) -> CompletedHops:
        """Marks completed hops, for actors with `deduplicate: true`."""
        return CompletedHops(
            clients.dynamodb(), self.settings.table_name("hops"), self.settings.table.retention.payloads
        )

    @cached_property
    def breaker(self) -> Breaker | None:
        """The circuit breaker of this function's actor, if it has one."""
        spec = self.settings.table.actors.get(self.settings.actor)
        limits = spec.resiliency.circuit_breaker if spec is not None else None
        if spec is None or limits is None:
            return None
        return Breaker(
            clients.dynamodb(),
            table=self.settings.table_name("breaker"),
            actor=self.settings.actor,
            limits=limits,
            probe_seconds=spec.timeout + PROBE_MARGIN_SECONDS,
            on_error=self._breaker_failed,
        )

    @cached_property
    def secrets(self) -> "Secrets | None":
        """The secrets of this function's actor, if it has any."""
        spec = self.settings.table.actors.get(self.settings.actor)
        if spec is None or not spec.secrets:
            return None
        # Imported for these actors alone: Powertools' providers would lengthen each cold start.
        from asya.sidecar.aws.secrets import Secrets

        return Secrets(spec.secrets, os.environ, self.environment, self._secret_is_stale)

    @cached_property
    def worker(self) -> BatchProcessor:
        """Processes batches of this function's queue."""
        queue_url = self.settings.queue_url(self.settings.actor)
        return BatchProcessor(
            clients.sqs(),
            queue_url,
            (self.outbox, self.required_reports),
            self.telemetry,
            self.starts,
            self.environment.random,
            self.note_outages,
        )

    @cached_property
    def starts(self) -> Starts:
        """Counts the starts of the messages on this function's queue."""
        settings = self.settings
        actor = settings.actor
        return Starts(
            actor,
            settings.table.actors.get(actor, SYSTEM_FUNCTION).max_receives,
            StartMarks(clients.dynamodb(), settings.table_name("sink"), actor),
            FailedMessages(clients.sqs(), settings.dlq_url(actor)),
            self.health,
            self.telemetry,
            lambda: self.now().timestamp(),
            self.admission.note_given_up,
            self._given_up,
        )

    def _given_up(self, arrival: Arrival) -> bytes:
        """The message as admitted, with its key."""
        return self.keys.sealed(given_up_body(arrival, self.settings.actor, self.keys.enter))

    @property
    def health(self) -> ServiceHealth:
        """What this process knows of the services."""
        return clients.HEALTH

    @cached_property
    def outage_notes(self) -> OutageNotes:
        """The mesh's notes of outages."""
        return OutageNotes(clients.dynamodb(), self.settings.table_name("sink"))

    def note_outages(self, is_kept: bool) -> None:
        """Note the outages that this process has seen; those that cannot be noted now are noted later.

        Args:
            is_kept: whether an outage has kept a message of the batch on its queue.
        """
        self.health.end_batch(is_kept=is_kept)
        seen = self.health.take_unnoted()
        if not seen:
            return
        try:
            self.outage_notes.add(seen)
        except (ClientError, BotoCoreError) as error:
            self.telemetry.log.warning("outage not noted", exc_info=error)
            self.health.keep_unnoted(seen)

    def outages_since(self, since: datetime) -> str:
        """What an error says about the outages since a time; empty without any, and while the notes cannot be read."""
        noted: list[Outage] = []
        try:
            noted = self.outage_notes.read()
        except (ClientError, BotoCoreError) as error:
            self.telemetry.log.warning("notes of outages not read", exc_info=error)
        # After the read, which may itself show that DynamoDB is off.
        return words_about(merged(noted, self.health.known), since, self.now())

    @cached_property
    def state_queries(self) -> StateQueries:
        """Asks for the states of tasks."""
        reader = StateReader(clients.dynamodb_without_waiting(), self.settings.table_name("tasks"))
        return StateQueries(reader, self.environment.monotonic, QueryNotices(self.telemetry))

    @cached_property
    def report_sender(self) -> ReportSender:
        """Sends reports to the report queues."""
        return ReportSender(clients.sqs(), self.settings.queue_url, self.settings.gateway_url)

    @cached_property
    def progress(self) -> ProgressReporter:
        """Reports progress in the background."""
        return ProgressReporter(self.report_sender, self._progress_dropped, threaded=self.environment.is_threaded)

    @cached_property
    def required_reports(self) -> RequiredReports:
        """Sends required reports."""
        return RequiredReports(self.report_sender, self.progress)

    def report_url(self, envelope: Envelope) -> str | None:
        """The base URL for reports on this envelope; None for a stealth envelope or without a gateway."""
        if envelope.is_stealth:
            return None
        return report_url(envelope, configured=self.settings.gateway_url, allowed_hosts=self.allowed_hosts)

    def records_task(self, envelope: Envelope) -> bool:
        """Whether the task of an envelope has its record in this mesh."""
        return self.settings.gateway_url is not None and self.report_url(envelope) == self.settings.gateway_url

    @cached_property
    def allowed_hosts(self) -> frozenset[str]:
        """The hosts that may receive reports."""
        return allowed_hosts(self.settings.gateway_url, self.settings.table.gateway.foreign_gateways)

    def _breaker_failed(self, error: Exception) -> None:
        self.telemetry.log.warning("circuit breaker unavailable; calls proceed without it", exc_info=error)

    def _secret_is_stale(self, error: SecretError) -> None:
        self.telemetry.log.warning("secret not refreshed; its earlier value is used", problem=str(error))

    def _progress_dropped(self, count: int, problem: str) -> None:
        self.telemetry.count("ReportsDropped", count)
        self.telemetry.log.warning("progress reports dropped", count=count, problem=problem)


@cache
def services() -> Services:
    """The services of this process, from its environment variables."""
    return Services(load_settings(os.environ))
