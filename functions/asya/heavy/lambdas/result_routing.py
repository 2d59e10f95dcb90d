"""Routes the results of an ended job run: in chunks, resumable, from one commit (`protocol §10`)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from asya.capabilities.legacy.options import numbers_children
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery, Hop
from asya.heavy import results as job_results
from asya.heavy import run_failures
from asya.heavy.aws.completion_messages import JobRunEvent
from asya.heavy.aws.run_files import ResultsError, RunOutput
from asya.heavy.aws.run_records import Resolution, RoutingCursor, RunRecord, job_run_number
from asya.heavy.capacity import failed_for_capacity, got_no_executor
from asya.heavy.lambdas.services import SparkServices
from asya.heavy.results import (
    Outcome,
    PartResult,
    RunOutcomes,
    check_after_run,
    outcome_of,
    outcome_of_charge,
    outcome_of_diversion,
    part_results,
    runs_again_larger,
    unreadable_results,
    with_late_copy,
)
from asya.heavy.run_failures import (
    CHARGED,
    NO_EXECUTOR,
    SPARK_JOB_FAILED,
    WAITING,
    FailedRun,
    FailureDecision,
    in_next_size,
    ran_out_of_memory,
    returned_members,
)
from asya.heavy.run_formation import spark_job
from asya.heavy.run_sizes import next_size
from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TaskEvent
from asya.protocol.job_runs import Manifest, Member, ResultFrame, ResultHead, ResultPart, driver_log_key
from asya.protocol.mesh_table import Actor
from asya.protocol.run_progress import RunNote
from asya.protocol.times import parse_time
from asya.sidecar.lambdas.intake import FRESH_SECONDS
from asya.sidecar.lambdas.metrics_and_spans import record_diversion, record_job_result, trace_job
from asya.sidecar.lambdas.problems import problem_report
from asya.tasks.reporting import reports
from asya.tasks.task_state import TaskState

# Number of deliveries between two checkpoints.
CHUNK = 500
_STATES_AHEAD = 100


@dataclass(frozen=True, slots=True)
class _Sent:
    """A delivery of the chunk.

    Attributes:
        last: the report that a problem of its hop would repeat.
        url: where to report; None without reporting.
        cursor: the cursor before it.
        requeued: number of members of the chunk that run again and come before it.
    """

    receipt: Receipt
    last: TaskEvent
    url: str | None
    cursor: RoutingCursor
    requeued: int


class OutOfTime(Exception):  # noqa: N818 - no error: the rest is for the next invocation
    """The invocation has no time left; the next one continues at the recorded cursor."""


class ResultRouter:
    """Routes one run, from the cursor of its record.

    Attributes:
        decision: the fate of the members without a result, once it is known.
        has_larger: whether it has made members pending that ran out of memory, for a run in the next size.
    """

    def __init__(
        self,
        services: SparkServices,
        *,
        manifest: Manifest,
        spec: Actor,
        record: RunRecord,
        event: JobRunEvent,
        note: RunNote,
        is_late: Callable[[], bool],
    ) -> None:
        self._services = services
        self._manifest = manifest
        self._spec = spec
        self._record = record
        self._event = event
        self._note = note
        self._is_late = is_late
        self._cursor = self._saved_cursor = record.cursor
        # A chunk may have failed before: the first delivery of a retry goes alone, so that a refusal repeats no other one.
        self._chunk = CHUNK if record.resolution is None else 1
        self._sent: list[_Sent] = []
        self._requeued: list[Member] = []
        self.decision = CHARGED
        self.has_larger = False
        self._states: dict[str, TaskState] = {}
        self._states_of = range(0)
        self._states_read_at = 0.0

    def route(self) -> RunOutcomes:
        """Routes the results after the cursor.

        Returns:
            The outcomes of all members.

        Raises:
            OutOfTime: if results are left.
            ResultsError, SendError, botocore.exceptions.ClientError: if routing fails; a retry repeats one chunk at most.
        """
        services, record = self._services, self._record
        resolution = record.resolution or _resolve(services, self._manifest, record, self._event, self._spec)
        self.decision = resolution.decision
        output = services.results.read(
            record.folder,
            resolution.source,
            resolution.attempt,
            parts=resolution.parts,
            members=len(self._manifest.members),
        )
        for index in range(self._cursor.part, len(output.parts)):
            self._route_part(output.parts[index], resolution.attempt)
            self._cursor = RoutingCursor(part=index + 1, outcomes=self._cursor.outcomes)
        self._route_missing(resolution, output)
        self._checkpoint()
        return self._cursor.outcomes

    def _route_part(self, part: ResultPart, attempt: str) -> None:
        """Routes the results of one part, from the cursor on."""
        for result in self._results(part, attempt):
            if result.line >= self._cursor.line:
                self._route_result(result)
                line = result.line + 1 + (result.head.frames if result.head else 0)
                self._cursor = RoutingCursor(self._cursor.part, line, outcomes=self._cursor.outcomes)
                self._checkpoint_if_due()

    def _results(self, part: ResultPart, attempt: str) -> Iterator[PartResult]:
        """The results of a part; all are unreadable if the part is missing or has another size."""
        try:
            lines = self._services.results.lines(self._record.folder, attempt, part)
            first = next(lines, None)
        except ResultsError as error:
            return unreadable_results(part, str(error), first=part.first)
        return part_results(part, chain(() if first is None else (first,), lines))

    def _route_result(self, result: PartResult) -> None:
        """Sends the deliveries of one member, from the cursor on; one without a readable result is charged."""
        head, frames = result.head, result.frames
        if head is None:
            problem = f"the result of this envelope in {self._manifest.run_id} cannot be read: {result.problem}"
            self._route_member(result.index, None, ErrorInfo(type=SPARK_JOB_FAILED, message=problem))
            return
        member = self._manifest.members[head.index]
        hop = self._services.hop(self._manifest.actor, self._spec, member)
        sent_before = self._cursor.frame
        # After frame 0 was sent, the next actor checks the envelope.
        if not sent_before and self._divert_stopped(hop, head.index, member):
            return
        hop = with_late_copy(hop, None if sent_before else self._state(head.index, member))
        if not sent_before and not hop.is_late_copy and runs_again_larger(head, self.decision):
            self._requeue(in_next_size(self._manifest, head.index, self.decision))
            return
        if not sent_before and not hop.is_late_copy:
            record_job_result(self._services.base, head, self._manifest.actor)
            self._trace(hop, None if head.end == states.DONE else head.error.type if head.error else head.end)
            frames = self._with_report(hop, member, head, frames)
        for delivery in job_results.deliveries(
            hop,
            head,
            frames,
            first=sent_before,
            now=self._services.now(),
            jitter=self._services.base.environment.random(),
            numbered=self._numbers_children(hop, head),
        ):
            if delivery is not None:
                self._send(delivery, hop)
            if not self._cursor.frame:
                self._count(outcome_of(head, delivery))
            self._cursor = replace(self._cursor, frame=self._cursor.frame + 1)
            self._checkpoint_if_due()
        if not self._cursor.frame:
            self._count(outcome_of(head, None))  # a late copy without further frames

    def _numbers_children(self, hop: Hop, head: ResultHead) -> bool:
        """Whether children get the numbered ids of the envelope, which a hop with several frames claims (`protocol §14`)."""
        if head.frames < 2 or not numbers_children(hop.spec):
            return False
        return self._services.base.admission.claim_numbered_ids(hop.envelope)

    def _with_report(
        self, hop: Hop, member: Member, head: ResultHead, frames: Iterator[ResultFrame]
    ) -> Iterator[ResultFrame]:
        """The frames; reports `completed` with the first frame, or without frames if the job is done."""
        first = next(frames, None)
        if first is None and head.end != states.DONE:
            return
        if member.report_url is not None:
            ahead = first.next if first else None
            event = reports.completed(hop, ahead, now=self._services.now(), duration_ms=head.duration_ms)
            self._services.base.progress.report(member.report_url, reports.with_run(event, self._note))
        if first is not None:
            yield first
            yield from frames

    def _route_missing(self, resolution: Resolution, output: RunOutput) -> None:
        """Charges the members without a result, or makes them run again."""
        missing = output.missing(len(self._manifest.members))
        if len(missing) <= self._cursor.missing:
            return
        back = returned_members(self._manifest, resolution.decision, missing)
        error = (
            _charge_error(
                self._services,
                self._manifest,
                resolution,
                output,
                self._event,
                record=self._record,
                charged=len(missing) - len(back),
            )
            if len(back) < len(missing)
            else None
        )
        self._services.base.telemetry.log.warning(
            "envelopes without a result",
            run_id=self._manifest.run_id,
            charged=len(missing) - len(back),
            again=len(back),
            problem=error.message if error else "the run had no time left",
        )
        for index in missing[self._cursor.missing :]:
            self._route_member(index, back.get(index), error)
            self._cursor = replace(self._cursor, line=0, frame=0, missing=self._cursor.missing + 1)
            self._checkpoint_if_due()

    def _route_member(self, index: int, again: Member | None, error: ErrorInfo | None) -> None:
        """Handles one member without a result; a member that runs again needs no read of its envelope."""
        member = self._manifest.members[index]
        if again is not None and not self._may_be_stopped(index, member):
            self._requeue(again)
            return
        hop = self._services.hop(self._manifest.actor, self._spec, member)
        if self._divert_stopped(hop, index, member):
            return
        if again is not None:
            self._requeue(again)
        elif error is not None:
            self._charge(with_late_copy(hop, self._state(index, member)), error)

    def _may_be_stopped(self, index: int, member: Member) -> bool:
        """Whether the task is canceled or its deadline has passed; needs no envelope."""
        deadline = parse_time(member.deadline_at) if member.deadline_at else None
        state = self._state(index, member)
        is_late = deadline is not None and deadline < self._services.now()
        return is_late or (state is not None and state.is_canceled)

    def _charge(self, hop: Hop, error: ErrorInfo) -> None:
        base = self._services.base
        base.telemetry.count("Processed", by=("outcome", states.FAILED), actor=hop.actor)
        self._trace(hop, error.type)
        delivery = job_results.failure(hop, error, now=self._services.now(), jitter=base.environment.random())
        self._send(delivery, hop)
        self._count(outcome_of_charge(delivery))

    def _requeue(self, member: Member) -> None:
        self._requeued.append(member)
        self.has_larger = self.has_larger or member.size == self.decision.larger != ""
        self._count("again")

    def _count(self, outcome: Outcome) -> None:
        """Counts a member; a chunk that is routed again begins with the counts of its cursor."""
        self._cursor = replace(self._cursor, outcomes=self._cursor.outcomes.plus(outcome))

    def _trace(self, hop: Hop, error: str | None) -> None:
        started_at = parse_time(self._record.running_at or self._record.formed_at)
        trace_job(self._services.base, hop, started_at, self._manifest.run_id, error)

    def _divert_stopped(self, hop: Hop, index: int, member: Member) -> bool:
        """Diverts a canceled or late envelope; returns whether it did."""
        state, outages = self._state(index, member), self._services.base.outages_since
        diversion = check_after_run(hop, state, now=self._services.now(), outages=outages)
        if diversion is None:
            return False
        record_diversion(self._services.base, diversion.why, actor=self._manifest.actor)
        for delivery in diversion.deliveries:
            self._send(delivery, hop)
        self._count(outcome_of_diversion(diversion))
        return True

    def _state(self, index: int, member: Member) -> TaskState | None:
        """The state of a member's task; queried in batches, and again once it is too old (`protocol §5.4.fresh`)."""
        monotonic = self._services.base.environment.monotonic
        if index not in self._states_of or monotonic() - self._states_read_at > FRESH_SECONDS:
            self._states_read_at = monotonic()
            ahead = self._manifest.members[index : index + _STATES_AHEAD]
            self._states = self._services.states(ahead)
            self._states_of = range(index, index + len(ahead))
        return self._states.get(member.id)

    def _send(self, delivery: Delivery, hop: Hop) -> None:
        base = self._services.base
        if delivery.kind == "retry":
            base.telemetry.count("Retried", actor=self._manifest.actor)
        report = reports.processing(hop, now=self._services.now())
        receipt, url = base.outbox.send(delivery), base.report_url(hop.envelope)
        if delivery.retry is not None and url is not None:
            base.progress.report(url, reports.retried(hop, delivery.retry, now=self._services.now()))
        self._sent.append(_Sent(receipt, report, url, self._cursor, len(self._requeued)))

    def _checkpoint_if_due(self) -> None:
        chunk = self._chunk
        if len(self._sent) + len(self._requeued) >= chunk:
            self._checkpoint()
            if chunk == CHUNK and self._is_late():
                raise OutOfTime

    def _checkpoint(self) -> None:
        """Sends all deliveries, then records the cursor; it stops before the first delivery that was not accepted."""
        base = self._services.base
        base.outbox.flush()
        failed = next((sent for sent in self._sent if sent.receipt.error is not None), None)
        if failed is not None:
            self._report_problems()
        for sent in self._sent:
            if sent.receipt.error is None:
                base.telemetry.count("Sent", by=("kind", sent.receipt.kind), actor=self._manifest.actor)
        requeued = self._requeued if failed is None else self._requeued[: failed.requeued]
        self._services.pending.requeue(self._manifest.actor, requeued, now=self._services.now())
        cursor = self._cursor if failed is None else failed.cursor
        self._services.records.advance(self._manifest.actor, self._manifest.number, self._saved_cursor, cursor)
        self._saved_cursor = cursor
        if failed is not None and failed.receipt.error is not None:
            raise failed.receipt.error
        self._sent, self._requeued, self._chunk = [], [], CHUNK
        base.progress.flush()
        base.telemetry.flush()

    def _report_problems(self) -> None:
        """Reports which envelopes a refusal of a queue holds up."""
        base = self._services.base
        for sent in self._sent:
            error = sent.receipt.error
            event = problem_report(sent.last, error, now=self._services.now()) if error is not None else None
            if event is not None and sent.url is not None:
                base.progress.report(sent.url, event)
        base.progress.flush()


def _resolve(
    services: SparkServices, manifest: Manifest, record: RunRecord, event: JobRunEvent, spec: Actor
) -> Resolution:
    """Resolves a run once; later calls return the first resolution.

    Raises:
        botocore.exceptions.ClientError: if S3 or DynamoDB fails.
    """
    records, actor, number = services.records, manifest.actor, manifest.number
    output = services.results.find(record.folder, len(manifest.members))
    failed_origin, larger = None, next_size(spark_job(actor, spec), manifest.size)
    if output.source == "commit":
        # The first member of a run gets its full timeout. Without any result no driver has run out of time: its job wrote that.
        count = len(manifest.members)
        ran_out = output.unreached is not None and output.error is None and len(output.missing(count)) < count
        decision = FailureDecision("again") if ran_out else CHARGED
    elif not event.job_run_id:
        decision = CHARGED  # EMR Serverless rejected the run; a smaller one would be rejected too
    elif record.place is not None and output.stage == "absent":
        decision = WAITING  # the resident run ended before it took this batch
    elif failed_for_capacity(event.state, event.details, has_driver_output=output.stage != "absent"):
        decision = NO_EXECUTOR if got_no_executor(event.details) else WAITING
    else:
        failed_origin = run_failures.origin(manifest)
        failed_run = FailedRun(
            missing=output.missing(len(manifest.members)),
            stage=output.stage,
            at_work=output.at_work,
            is_first=output.is_first,
            failures=records.failures(actor, failed_origin) + 1,
            larger=larger if ran_out_of_memory(event.details) else "",
        )
        decision = run_failures.decide(manifest, failed_run)
    resolution = Resolution(
        output.source,
        output.attempt,
        len(output.parts),
        replace(decision, larger=larger),
        started=output.stage == "working",
    )
    return records.resolve(actor, number, resolution, now=services.now(), failed_origin=failed_origin)


def _charge_error(
    services: SparkServices,
    manifest: Manifest,
    resolution: Resolution,
    output: RunOutput,
    event: JobRunEvent,
    *,
    record: RunRecord,
    charged: int,
) -> ErrorInfo:
    """The error of the members that are charged with a run; `charged` is their number."""
    if output.error is not None:
        return output.error
    name = f"{event.job_run_id} ({manifest.run_id})" if event.job_run_id else manifest.run_id
    ending = f"job run {name} ended {event.state}: {event.details or 'no reason given'}".rstrip(". ")
    if output.source == "commit":
        return ErrorInfo(type=SPARK_JOB_FAILED, message=f"{ending}, without a result for this envelope")
    if not event.job_run_id:
        return ErrorInfo(type=SPARK_JOB_FAILED, message=ending)
    log = driver_log_key(manifest.actor, job_run_number(record), event.application_id, event.job_run_id)
    return run_failures.charge_error(
        ending,
        resolution.decision,
        missing=len(output.missing(len(manifest.members))),
        charged=charged,
        started=resolution.started,
        python_error=services.results.last_error(record.folder),
        hint=f"Log: s3://{services.settings.bucket}/{log}; details: asya job show {manifest.run_id}",
    )
