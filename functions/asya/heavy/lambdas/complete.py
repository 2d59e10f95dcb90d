"""The completion: reports running job runs, and routes the results of ended ones (`protocol §10`)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.batch import BatchResponse, Record, records
from asya.heavy.aws.completion_messages import CanceledTask, JobRunEvent, WatchRequest, WrittenCommit, decode_message
from asya.heavy.aws.emr_serverless import TERMINAL_STATES, UNKNOWN_RUN, JobRunState, is_unknown_run
from asya.heavy.aws.run_files import ManifestError
from asya.heavy.aws.run_records import RunRecord, job_run_number, state_rank
from asya.heavy.capacity import RETRY_SECONDS
from asya.heavy.lambdas.cancellation import RunCancellation, UnknownStatesError
from asya.heavy.lambdas.resident_runs import ResidentRuns
from asya.heavy.lambdas.result_routing import OutOfTime, ResultRouter
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.lambdas.watch import RunWatch
from asya.heavy.results import RunOutcomes
from asya.heavy.run_failures import CHARGED, LACKS_CAPACITY, FailureDecision
from asya.heavy.statements import CANCELED, COMMIT, RUN_STATE, WATCH
from asya.protocol.job_runs import Manifest, Usage, parse_commit_key, parse_run_id, run_id
from asya.protocol.run_progress import RunNote
from asya.protocol.times import format_time, parse_time
from asya.senders.statements import Proof, Statement
from asya.sidecar.lambdas.entry_point import LambdaContext
from asya.tasks.reporting import reports

# Time left in the function below which no new chunk starts.
MARGIN_SECONDS = 60.0
_REPORT_BATCH = 500
# The receive at which a message is given up that waits for what may never come.
LAST_RECEIVE = 4

# States that show free capacity, so the next run may start.
STARTING_STATES = frozenset({"SCHEDULED", "RUNNING"})


class UnknownActorError(LookupError):
    """An actor was removed from the mesh while it had job runs; the message becomes a dead letter for an operator."""


class UnconfirmedStateError(Exception):
    """EventBridge may be ahead of EMR Serverless; the event is received again."""


class RunNotEndedError(Exception):
    """The event reports the end of a job run that has not ended, or that is another one."""


_STATEMENTS: Mapping[type, Statement] = {
    JobRunEvent: RUN_STATE,
    WatchRequest: WATCH,
    CanceledTask: CANCELED,
    WrittenCommit: COMMIT,
}


@dataclass(frozen=True, slots=True)
class Completion:
    """Handles the messages of the completion's queue."""

    services: SparkServices
    context: LambdaContext

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Processes one batch and reports partial batch failures."""
        base = self.services.base
        try:
            return base.worker.process(records(event), self._handle)
        finally:
            base.progress.flush()
            base.telemetry.flush()

    def _handle(self, record: Record) -> list[Receipt]:
        log = self.services.base.telemetry.log
        try:
            message = decode_message(record.arrival.body)
        except (ValueError, RecursionError) as error:
            log.warning("malformed message dropped", problem=str(error), message_id=record.message_id)
            return []
        statement, admission = _STATEMENTS.get(type(message)), self.services.base.admission
        if statement is not None and (refused := admission.problem(record.arrival, statement)) is not None:
            sender = record.arrival.sender
            log.warning("message dropped", problem=refused, sender=sender, message_id=record.message_id)
            return []
        if isinstance(message, JobRunEvent) and admission.proof(record.arrival, RUN_STATE) is Proof.SERVICE:
            # EventBridge is no role of the mesh, so only what EMR Serverless confirms counts. A commit is read from S3.
            message = self._confirmed(message, record)
        match message:
            case JobRunEvent():
                self._handle_event(message, record)
            case WatchRequest():
                RunWatch(self.services).poll(message, record.message_id)
            case CanceledTask():
                self._cancel_idle_runs(message.task_id, record)
            case WrittenCommit():
                self._handle_commit(message.key, record)
            case None:
                log.info("unknown message dropped", message_id=record.message_id, sender=record.arrival.sender)
        return []

    def _confirmed(self, event: JobRunEvent, record: Record) -> JobRunEvent | None:
        """An event from outside, if EMR Serverless says so too; the end of a run is checked when it is handled.

        Raises:
            UnconfirmedStateError: EMR Serverless has not seen this state yet.
        """
        if event.is_own or not event.job_run_id:
            return None
        if event.state in TERMINAL_STATES or state_rank(event.state) < 0:
            return event
        try:
            run = self.services.job_runs.state(event.job_run_id)
        except ClientError as error:
            if not is_unknown_run(error) and error.response["Error"]["Code"] != "ValidationException":
                raise
            return None
        if run.name != event.name:
            return None
        if run.is_terminal or state_rank(run.state) >= state_rank(event.state):
            return event
        if record.arrival.receive_count < LAST_RECEIVE:
            raise UnconfirmedStateError(f"job run {event.job_run_id} is {run.state}, and not {event.state} yet")
        return None

    def _cancel_idle_runs(self, task_id: str, record: Record) -> None:
        """Cancels the runs of a canceled task; unknown states never make a dead letter, because a run only costs money."""
        try:
            RunCancellation(self.services).cancel_runs_of(task_id)
        except UnknownStatesError:
            if record.arrival.receive_count < LAST_RECEIVE:
                raise
            self.services.base.telemetry.log.warning("task states unknown; job runs not canceled", envelope_id=task_id)

    def _handle_event(self, event: JobRunEvent, record: Record) -> None:
        """Records the new state of a job run and acts on it; an unknown state is only logged."""
        services, log = self.services, self.services.base.telemetry.log
        name = parse_run_id(event.name, services.settings.namespace)
        if name is None or event.application_id != services.spark.application_id:
            log.info("event of another job run dropped", message_id=record.message_id)
            return
        services.base.telemetry.count("JobRuns", by=("state", event.state.lower()), actor=name[0])
        log.info("job run", run_id=event.name, job_run_id=event.job_run_id, state=event.state)
        if event.state in STARTING_STATES:
            services.requests.expedite(name[0], now=services.now())
        if event.state in TERMINAL_STATES:
            self._handle_end(*name, event, record)
            return
        if state_rank(event.state) < 0:
            log.warning("unknown job run state", state=event.state, run_id=event.name)
            return
        running_at = format_time(services.now()) if event.state == "RUNNING" else None
        application = event.application_id
        services.records.record_state(*name, event.state, running_at=running_at, application_id=application)
        if running_at:
            self._handle_running(*name, event)

    def _handle_running(self, actor: str, number: int, event: JobRunEvent) -> None:
        """Reports and watches a run that started; cancels it if all its members are canceled."""
        record = self.services.records.get(actor, number)
        if record is None or record.resolution is not None:
            return
        self._report_running(record, event)
        RunWatch(self.services).start(event.name, event.job_run_id)
        try:
            manifest = self._manifest(record)
            if manifest.members:
                RunCancellation(self.services).cancel_if_idle(record, manifest, manifest.members[0].id)
        except ManifestError:
            self.services.base.telemetry.log.exception("manifest unusable; job run not canceled", run_id=event.name)
        except UnknownStatesError:
            self.services.base.telemetry.log.info("task states unknown; job run not canceled", run_id=event.name)

    def _handle_commit(self, key: str, message: Record) -> None:
        """Completes a run that a resident job run has committed; others wait for the end of their job run."""
        folder = parse_commit_key(key)
        record = ResidentRuns(self.services).committed(folder, key) if folder is not None else None
        if record is None:
            self.services.base.telemetry.log.info("commit of no resident run dropped", key=key)
            return
        name = run_id(self.services.settings.namespace, record.actor, record.number)
        application, job_run_id = self.services.spark.application_id, record.job_run_id or ""
        self._complete(record, JobRunEvent(application, job_run_id, name, "SUCCESS"), message, is_over=False)

    def _handle_end(self, actor: str, number: int, event: JobRunEvent, message: Record) -> None:
        """Completes a run whose job run has ended."""
        record = self.services.records.get(actor, number)
        if record is None:
            self.services.base.telemetry.log.info("run without a record", run_id=event.name)
            return
        if record.is_resident:
            record = ResidentRuns(self.services).end(record, event)
        self._complete(record, event, message)

    def _complete(self, record: RunRecord, event: JobRunEvent, message: Record, *, is_over: bool = True) -> None:
        """Routes the remaining results of a run and closes it.

        Args:
            is_over: whether the job run has ended, as the event says; else the run has a commit.
        """
        services, log = self.services, self.services.base.telemetry.log
        actor, number = record.actor, record.number
        spec = services.heavy_actor(actor)
        if record.state == "closed":
            log.info("run already closed", run_id=event.name)
            self._request_returned(actor, record.resolution.decision if record.resolution else CHARGED, record.outcomes)
            return
        if _is_duplicate_run(services, record, event):
            log.warning("duplicate job run ended", run_id=event.name, job_run_id=event.job_run_id)
            return
        owner, now = message.message_id, self.services.now()
        # The owner of the lease has its own message, which SQS delivers again if the owner fails.
        if not services.records.acquire_lease(actor, number, owner, until=now + self._time_left, now=now):
            log.info("another invocation routes this run", run_id=event.name)
            return
        try:
            event, usage = self._with_details(record, event) if is_over else (event, None)
        except RunNotEndedError as error:
            # Any sender may send an event. The watch and the reconciler notice the true end of the run.
            log.warning("event contradicts the job run; dropped", run_id=event.name, problem=str(error))
            services.records.release_lease(actor, number, owner)
            return
        if spec is None:
            # Its end is recorded, so its permit is free; a message of a redrive has another owner.
            services.records.release_lease(actor, number, owner)
            raise UnknownActorError(
                f"run {event.name} has results, but the mesh has no heavy actor {actor!r}; deploy it again to route them"
            )
        router = ResultRouter(
            services,
            manifest=self._manifest_or_release(record, owner),
            spec=spec,
            record=record,
            event=event,
            note=self._note(record, event, usage),
            is_late=lambda: self._time_left < timedelta(seconds=MARGIN_SECONDS),
        )
        try:
            outcomes = router.route()
        except OutOfTime:
            log.info("routing continues in another invocation", run_id=event.name)
            services.records.release_lease(actor, number, owner)
            self._resend(message)
            return
        services.records.close(actor, number)
        log.info("run closed", run_id=event.name, state=event.state)
        for heavy_actor in services.heavy_actors():
            services.requests.expedite(heavy_actor, now=self.services.now())
        # Only after the close, because returned members wait for it.
        if router.has_larger:
            services.base.telemetry.count("JobRuns", by=("state", "larger"), actor=actor)
        self._request_returned(actor, router.decision, outcomes)
        if not is_over and services.pending.has_any(actor):
            services.requests.hasten(actor, now=self.services.now())  # the resident run is idle

    def _request_returned(self, actor: str, decision: FailureDecision, outcomes: RunOutcomes | None) -> None:
        # Envelopes with a result run again too, if their calls ran out of memory.
        if decision.fate != "charged" or (outcomes is not None and outcomes.again):
            delay = RETRY_SECONDS if decision.fate in LACKS_CAPACITY else 0.0
            self.services.requests.ensure(actor, delay, now=self.services.now(), for_capacity=delay > 0)

    def _with_details(self, record: RunRecord, event: JobRunEvent) -> tuple[JobRunEvent, Usage | None]:
        """Completes the event with the reason of the end, and returns the usage; both are recorded.

        State and reason of the job run count, not those of the event, because others may send to the queue.

        Raises:
            RunNotEndedError: the job run is active, or it is another one, or none that EMR Serverless knew.
            botocore.exceptions.ClientError: the job run cannot be read, and it has no commit.
        """
        event = replace(event, job_run_id=event.job_run_id or record.job_run_id or "")
        if record.usage is not None:
            return replace(event, state=record.job_state, details=record.details), record.usage
        if not event.job_run_id:
            if record.state != "started":
                raise RunNotEndedError("the run has not been started")
            return event, None  # EMR Serverless rejected the run; only the dispatcher knows why
        try:
            ended = self._ended(record, event)
        except (ClientError, BotoCoreError) as error:
            is_recorded = event.job_run_id == record.job_run_id
            if not is_recorded or not self.services.results.has_commit(record.folder):
                raise
            self.services.base.telemetry.log.warning("usage of the run unknown", exc_info=error)
            return replace(event, details=record.details), None
        if ended.name != self._job_run_name(record) or not ended.is_terminal:
            raise RunNotEndedError(f"job run {event.job_run_id} is {ended.name!r} in state {ended.state}")
        if record.place is not None:
            return replace(
                event, state=ended.state, details=ended.details
            ), None  # the usage is that of all its batches
        self.services.records.record_state(
            record.actor,
            record.number,
            ended.state,
            details=ended.details,
            usage=ended.usage,
            application_id=event.application_id,
        )
        return replace(event, state=ended.state, details=ended.details), ended.usage

    def _ended(self, record: RunRecord, event: JobRunEvent) -> JobRunState:
        """The state of the job run that ended; of one that EMR Serverless no longer knows, that of the event.

        Raises:
            RunNotEndedError: EMR Serverless does not know the job run, and it is not the recorded one.
            botocore.exceptions.ClientError: the job run cannot be read.
        """
        try:
            ended = self.services.job_runs.state(event.job_run_id)
            return replace(ended, details=self.services.explained(record, ended.details))
        except ClientError as error:
            if not is_unknown_run(error):
                raise
            if event.job_run_id != record.job_run_id:
                raise RunNotEndedError(f"EMR Serverless does not know job run {event.job_run_id}") from error
            details = record.details or event.details or UNKNOWN_RUN
            return JobRunState(event.job_run_id, event.name, event.state, details)

    def _job_run_name(self, record: RunRecord) -> str:
        """The name of the job run that does the work of a run."""
        return run_id(self.services.settings.namespace, record.actor, job_run_number(record))

    def _note(self, record: RunRecord, event: JobRunEvent, usage: Usage | None) -> RunNote:
        """The note on the run for reports; with its usage, once it has ended."""
        return RunNote(
            run_id=event.name,
            job_run_id=event.job_run_id,
            state=event.state,
            at=format_time(self.services.now()),
            envelopes=record.members,
            usage=usage,
            size=record.size,
        )

    def _report_running(self, record: RunRecord, event: JobRunEvent) -> None:
        """Reports `processing` for every member (`protocol §10`); errors are only logged."""
        services, spec = self.services, self.services.heavy_actor(record.actor)
        if spec is None:
            return
        note, started_at = self._note(record, event, None), parse_time(record.running_at or record.formed_at)
        try:
            manifest = self._manifest(record)
            for count, member in enumerate(manifest.members, start=1):
                if member.report_url is not None:
                    report = reports.processing(services.hop(record.actor, spec, member), now=started_at)
                    services.base.progress.report(member.report_url, reports.with_run(report, note))
                if count % _REPORT_BATCH == 0:
                    services.base.progress.flush()
                    if self._time_left < timedelta(seconds=MARGIN_SECONDS):
                        break
        except Exception as error:  # a report of progress never fails a message
            services.base.telemetry.log.warning("running job run not reported", exc_info=error)

    def _manifest_or_release(self, record: RunRecord, owner: str) -> Manifest:
        """The manifest. If it does not fit, the run stays open and gives its lease back, for a redrive after the mending."""
        try:
            return self._manifest(record)
        except ManifestError:
            self.services.records.release_lease(record.actor, record.number, owner)
            raise

    def _manifest(self, record: RunRecord) -> Manifest:
        manifest = self.services.manifests.read(record.actor, record.number, record.manifest_digest)
        if manifest is None:
            raise ManifestError(f"the manifest of run {record.number} of {record.actor} is missing")
        return manifest

    def _resend(self, message: Record) -> None:
        settings = self.services.settings
        clients.sqs().send_message(
            QueueUrl=settings.queue_url(settings.actor), MessageBody=message.arrival.body.decode("utf-8")
        )

    @property
    def _time_left(self) -> timedelta:
        return timedelta(milliseconds=self.context.get_remaining_time_in_millis())


def _is_duplicate_run(services: SparkServices, record: RunRecord, event: JobRunEvent) -> bool:
    """Whether a second job run of the same manifest ended while the recorded one continues.

    EMR Serverless starts a second run if it forgets a client token. Its failure changes nothing, and its commit counts if it
    is the first one.
    """
    if record.resolution is not None or not record.job_run_id or record.job_run_id == event.job_run_id:
        return False
    if services.results.has_commit(record.folder):
        return False
    return bool(event.job_run_id) and not services.job_runs.has_ended(record.job_run_id)
