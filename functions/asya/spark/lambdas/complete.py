"""The completion: hears of job runs, reports that they run, and routes what they gave when they are over (`protocol §10`)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from asya.messaging.aws import clients
from asya.messaging.aws.receipt import Receipt
from asya.messaging.lambdas.batch import Answer, Record, records
from asya.protocol.job_runs import Manifest, Usage, parse_run_id
from asya.protocol.run_progress import RunNote
from asya.protocol.times import format_time, parse_time
from asya.reporting import reports
from asya.spark.aws.completion_messages import CanceledTask, decode_message
from asya.spark.aws.emr_serverless import TERMINAL_STATES
from asya.spark.aws.manifests import ManifestError
from asya.spark.aws.run_events import JobRunEvent
from asya.spark.aws.run_items import RunRecord, state_rank
from asya.spark.aws.watch_requests import WatchRequest
from asya.spark.lambdas.cancellation import RunCancellation, UnknownStatesError
from asya.spark.lambdas.resolution import is_of_a_double
from asya.spark.lambdas.result_routing import OutOfTime, ResultRouter
from asya.spark.lambdas.services import SparkServices
from asya.spark.lambdas.watch import RunWatch
from asya.spark.run_failures import CHARGED, FailureDecision

# Before the function's time is up; a chunk has to fit in.
MARGIN_SECONDS = 60.0
_REPORTS_AT_ONCE = 500
# Of a message about a canceled task: one receive before it would be a dead letter.
LAST_RECEIVE = 4


# Where there was no room for a run, the same again at once would come to the same.
CAPACITY_SECONDS = 15.0
# There was room for the run, so that there may be for the next.
STARTING_STATES = frozenset({"SCHEDULED", "RUNNING"})


class UnknownActorError(LookupError):
    """An actor was taken out of the mesh while it had job runs; its envelopes are kept until a person has looked."""


class LambdaContext(Protocol):
    """What Lambda tells about the invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is ended."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Works through events about job runs."""

    services: SparkServices
    context: LambdaContext

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
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
        except ValueError as error:
            log.warning("not an event; dropped", problem=str(error), message_id=record.message_id)
            return []
        match message:
            case JobRunEvent():
                self._handle_event(message, record)
            case WatchRequest():
                RunWatch(self.services).look(message, record.message_id)
            case CanceledTask():
                self._stop_idle_runs(message.task_id, record)
            case None:
                log.info("an event about something else", message_id=record.message_id)
        return []

    def _stop_idle_runs(self, task_id: str, record: Record) -> None:
        """A task was canceled; a run that goes on for nobody only costs money, which is no reason for a dead letter."""
        try:
            RunCancellation(self.services).cancel_runs_of(task_id)
        except UnknownStatesError:
            if record.arrival.receive_count < LAST_RECEIVE:
                raise
            self.services.base.telemetry.log.warning("not known who wants its runs; they go on", envelope_id=task_id)

    def _handle_event(self, event: JobRunEvent, record: Record) -> None:
        """A job run came into a state. All states are known; one that is new to us is noted and of no consequence."""
        services, log = self.services, self.services.base.telemetry.log
        name = parse_run_id(event.name, services.settings.namespace)
        if name is None or event.application_id != services.spark.application_id:
            log.info("an event about something else", message_id=record.message_id)
            return
        services.base.telemetry.count("JobRuns", by=("state", event.state.lower()), actor=name[0])
        log.info("job run", run_id=event.name, job_run_id=event.job_run_id, state=event.state)
        if event.state in STARTING_STATES:
            services.requests.expedite(name[0], now=services.now())
        if event.state in TERMINAL_STATES:
            self._complete(*name, event, record)
            return
        if state_rank(event.state) < 0:
            log.warning("a state of job runs that is not known here", state=event.state, run_id=event.name)
            return
        running_at = format_time(services.now()) if event.state == "RUNNING" else None
        application = event.application_id
        services.records.record_state(*name, event.state, running_at=running_at, application_id=application)
        if running_at:
            self._handle_running(*name, event)

    def _handle_running(self, actor: str, number: int, event: JobRunEvent) -> None:
        """A run works from now on: its tasks are told, it is looked at, and stopped if nobody wants it any more."""
        record = self.services.records.get(actor, number)
        if record is None or record.resolution is not None:
            return
        self._report_running(record, event)
        RunWatch(self.services).begin(event.name, event.job_run_id)
        manifest = self.services.manifests.read(actor, number)
        if manifest is not None and manifest.members:
            try:
                RunCancellation(self.services).cancel_if_idle(record, manifest, manifest.members[0].id)
            except UnknownStatesError:
                self.services.base.telemetry.log.info("whether it is wanted is not known", run_id=event.name)

    def _complete(self, actor: str, number: int, event: JobRunEvent, message: Record) -> None:
        """Route what is left to route, and close the run."""
        services, log = self.services, self.services.base.telemetry.log
        record = services.records.get(actor, number)
        spec = services.heavy_actor(actor)
        if record is None:
            log.info("a run that is not on record", run_id=event.name)
            return
        if record.state == "closed":
            log.info("nothing left to do for this run", run_id=event.name)
            self._request_returned(actor, record.resolution.decision if record.resolution else CHARGED)
            return
        if spec is None:
            raise UnknownActorError(
                f"run {event.name} has results, and this mesh has no heavy actor {actor!r} any more"
            )
        if is_of_a_double(services, record, event):
            log.warning("a second run of the same envelopes ended", run_id=event.name, job_run_id=event.job_run_id)
            return
        owner, moment = message.message_id, self.services.now()
        # Whoever holds the lease has a message of their own, which comes again if they die: this one is not needed.
        if not services.records.acquire_lease(actor, number, owner, until=moment + self._time_left, now=moment):
            log.info("being routed by another", run_id=event.name)
            return
        event, usage = self._with_details(record, event)
        router = ResultRouter(
            services,
            manifest=self._manifest(record),
            spec=spec,
            record=record,
            event=event,
            note=self._note(record, event, usage),
            is_late=lambda: self._time_left < timedelta(seconds=MARGIN_SECONDS),
        )
        try:
            decision = router.route()
        except OutOfTime:
            log.info("going on in another invocation", run_id=event.name)
            services.records.release_lease(actor, number, owner)
            self._resend(message)
            return
        services.records.close(actor, number)
        log.info("run closed", run_id=event.name, state=event.state)
        for other in services.heavy_actors():
            services.requests.expedite(other, now=self.services.now())
        # After closing: what a run gave back may be in the next one only then.
        self._request_returned(actor, decision)

    def _request_returned(self, actor: str, decision: FailureDecision) -> None:
        if decision.fate != "charged":
            delay = CAPACITY_SECONDS if decision.fate == "waiting" else 0.0
            self.services.requests.ensure(actor, delay, now=self.services.now(), for_capacity=delay > 0)

    def _with_details(self, record: RunRecord, event: JobRunEvent) -> tuple[JobRunEvent, Usage | None]:
        """The event with what EMR Serverless says about the end, and what the run took; both go on record.

        Raises:
            botocore.exceptions.ClientError: if that is needed to say why the run failed, and cannot be learned now.
        """
        details = event.details or record.details
        if not event.job_run_id or record.usage is not None:
            return replace(event, details=details), record.usage
        try:
            ended = self.services.job_runs.state(event.job_run_id)
        except (ClientError, BotoCoreError) as error:
            if event.state != "SUCCESS" and not details:
                raise
            self.services.base.telemetry.log.warning("what the run took is not known", exc_info=error)
            return replace(event, details=details), None
        details = details or ended.details
        self.services.records.record_state(
            record.actor,
            record.number,
            event.state,
            details=details,
            usage=ended.usage,
            application_id=event.application_id,
        )
        return replace(event, details=details), ended.usage

    def _note(self, record: RunRecord, event: JobRunEvent, usage: Usage | None) -> RunNote:
        """What the tasks are told of the run; what it took, once it is over."""
        return RunNote(
            run_id=event.name,
            job_run_id=event.job_run_id,
            state=event.state,
            at=format_time(self.services.now()),
            envelopes=record.members,
            usage=usage,
        )

    def _report_running(self, record: RunRecord, event: JobRunEvent) -> None:
        """`processing` for every member (`protocol §10`): progress, so whatever goes wrong here is only logged."""
        services, spec = self.services, self.services.heavy_actor(record.actor)
        if spec is None:
            return
        note, began = self._note(record, event, None), parse_time(record.running_at or record.formed_at)
        try:
            manifest = self._manifest(record)
            for count, member in enumerate(manifest.members, start=1):
                if member.callback is not None:
                    told = reports.processing(services.hop(record.actor, spec, member), now=began)
                    services.base.progress.report(member.callback, reports.with_run(told, note))
                if count % _REPORTS_AT_ONCE == 0:
                    services.base.progress.flush()
                    if self._time_left < timedelta(seconds=MARGIN_SECONDS):
                        break
        except Exception as error:  # progress never fails a message
            services.base.telemetry.log.warning("could not report that a run is running", exc_info=error)

    def _manifest(self, record: RunRecord) -> Manifest:
        manifest = self.services.manifests.read(record.actor, record.number)
        if manifest is None:
            raise ManifestError(f"the manifest of run {record.number} of {record.actor} is gone")
        return manifest

    def _resend(self, message: Record) -> None:
        settings = self.services.settings
        clients.sqs().send_message(
            QueueUrl=settings.queue_url(settings.actor), MessageBody=message.arrival.body.decode("utf-8")
        )

    @property
    def _time_left(self) -> timedelta:
        return timedelta(milliseconds=self.context.get_remaining_time_in_millis())
