"""Routing the results of a job run that is over: in chunks, resumable, one commit only (`protocol §10`)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Delivery
from asya.messaging.hop import Hop
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import TaskState
from asya.protocol.job_runs import Manifest, Member, ResultFrame, ResultHead
from asya.protocol.mesh_table import Actor
from asya.protocol.run_progress import RunNote
from asya.protocol.times import parse_time
from asya.reporting import reports
from asya.sidecar.lambdas.metrics import record_diversion, record_job_result
from asya.spark import results as job_results
from asya.spark.aws.run_events import JobRunEvent
from asya.spark.aws.run_items import Resolution, RoutingCursor, RunRecord
from asya.spark.aws.run_results import RunOutput
from asya.spark.lambdas.resolution import charge_error, resolve
from asya.spark.lambdas.services import SparkServices
from asya.spark.run_failures import FailureDecision, returned_members
from asya.spark.stopped_envelopes import check_after_run

# So many deliveries are on their way before it is noted how far the routing has come.
CHUNK = 500
_STATES_AHEAD = 100

_head_decoder = msgspec.json.Decoder(ResultHead)
_frame_decoder = msgspec.json.Decoder(ResultFrame)


class OutOfTime(Exception):  # noqa: N818 - no error: the rest is for the next invocation
    """The function's time is nearly up; the run's record tells where to go on."""


class ResultRouter:
    """The routing of one run, from where its record says it has come."""

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
        self._receipts: list[Receipt] = []
        self._requeued: list[Member] = []
        self._states: dict[str, TaskState] = {}
        self._states_end = 0

    def route(self) -> FailureDecision:
        """Route whatever has not been routed yet.

        Returns:
            What became of the members without a result.

        Raises:
            OutOfTime: there is more.
            ResultsError, SendError, botocore.exceptions.ClientError: not now; going on later repeats one chunk at most.
        """
        services, actor, number = self._services, self._manifest.actor, self._manifest.number
        settled = self._record.resolution or resolve(services, self._manifest, self._event)
        findings = services.results.read(actor, number, settled.source, settled.attempt, settled.parts)
        for place in range(self._cursor.part, len(findings.parts)):
            self._route_part(services.results.lines(actor, number, settled.attempt, findings.parts[place]))
            self._cursor = RoutingCursor(part=place + 1)
        self._route_missing(settled, findings)
        self._checkpoint()
        return settled.decision

    def _route_part(self, lines: Iterator[bytes]) -> None:
        """One file of results, from the cursor on."""
        _skip(lines, self._cursor.line)
        for text in lines:
            head = _head_decoder.decode(text)
            frames = islice(lines, head.frames)
            self._route_result(head, map(_frame_decoder.decode, frames))
            _skip(frames)  # a result that was stopped, or ended early, leaves some behind
            self._cursor = RoutingCursor(self._cursor.part, self._cursor.line + 1 + head.frames)
            self._checkpoint_if_due()

    def _route_result(self, head: ResultHead, frames: Iterator[ResultFrame]) -> None:
        """What leaves for one member; with a cursor amidst its frames only the rest."""
        member = self._manifest.members[head.index]
        hop = self._services.hop(self._manifest.actor, self._spec, member)
        left_before = self._cursor.frame
        # Once frame 0 has left, the id is elsewhere, and whatever stops the task will meet it there.
        if not left_before and self._divert_stopped(hop, head.index, member):
            return
        if not left_before:
            record_job_result(self._services.base, head, self._manifest.actor)
            frames = self._with_report(hop, member, head, frames)
        for delivery in job_results.deliveries(
            hop,
            head,
            frames,
            first=left_before,
            now=self._services.now(),
            jitter=self._services.base.environment.random(),
        ):
            self._send(delivery)
            self._cursor = RoutingCursor(self._cursor.part, self._cursor.line, self._cursor.frame + 1)
            self._checkpoint_if_due()

    def _with_report(
        self, hop: Hop, member: Member, head: ResultHead, frames: Iterator[ResultFrame]
    ) -> Iterator[ResultFrame]:
        """The frames; `completed` is reported with the first, or when it is known that there will be none."""
        first = next(frames, None)
        if first is None and head.end != "done":
            return
        if member.callback is not None:
            ahead = first.next if first else None
            event = reports.completed(hop, ahead, now=self._services.now(), duration_ms=head.duration_ms)
            self._services.base.progress.report(member.callback, reports.with_run(event, self._note))
        if first is not None:
            yield first
            yield from frames

    def _route_missing(self, settled: Resolution, findings: RunOutput) -> None:
        """Members without a result are charged, or run again."""
        lost = findings.lost(len(self._manifest.members))
        if len(lost) <= self._cursor.lost:
            return
        back = returned_members(self._manifest, settled.decision, lost)
        error = (
            charge_error(self._services, self._manifest, settled, findings, self._event)
            if len(back) < len(lost)
            else None
        )
        self._services.base.telemetry.log.warning(
            "envelopes without a result",
            run_id=self._manifest.run_id,
            charged=len(lost) - len(back),
            again=len(back),
            problem=error.message if error else "the run had no time for them",
        )
        for index in lost[self._cursor.lost :]:
            self._route_member(index, back.get(index), error)
            self._cursor = RoutingCursor(part=self._cursor.part, lost=self._cursor.lost + 1)
            self._checkpoint_if_due()

    def _route_member(self, index: int, again: Member | None, error: ErrorInfo | None) -> None:
        """One member without a result. Those that run again are many, so their envelopes stay where they are."""
        member = self._manifest.members[index]
        if again is not None and not self._may_be_stopped(index, member):
            self._requeued.append(again)
            return
        hop = self._services.hop(self._manifest.actor, self._spec, member)
        if self._divert_stopped(hop, index, member):
            return
        if again is not None:
            self._requeued.append(again)
        elif error is not None:
            self._charge(hop, error)

    def _may_be_stopped(self, index: int, member: Member) -> bool:
        """Whether the task was canceled, or its deadline has passed."""
        deadline = parse_time(member.deadline_at) if member.deadline_at else None
        state = self._state(index, member)
        is_late = deadline is not None and deadline < self._services.now()
        return is_late or (state is not None and state.is_canceled)

    def _charge(self, hop: Hop, error: ErrorInfo) -> None:
        base = self._services.base
        base.telemetry.count("Processed", by=("outcome", "failed"), actor=hop.actor)
        self._send(job_results.failure(hop, error, now=self._services.now(), jitter=base.environment.random()))

    def _divert_stopped(self, hop: Hop, index: int, member: Member) -> bool:
        """Whether the task was canceled meanwhile or its deadline passed; then that is what leaves."""
        stopped = check_after_run(hop, self._state(index, member), now=self._services.now())
        if stopped is None:
            return False
        record_diversion(self._services.base, stopped.why, actor=self._manifest.actor)
        for delivery in stopped.deliveries:
            self._send(delivery)
        return True

    def _state(self, index: int, member: Member) -> TaskState | None:
        """How a member's task stands; asked for many at a time."""
        if index >= self._states_end:
            ahead = self._manifest.members[index : index + _STATES_AHEAD]
            self._states = self._services.states(ahead)
            self._states_end = index + len(ahead)
        return self._states.get(member.id)

    def _send(self, delivery: Delivery) -> None:
        if delivery.kind == "retry":
            self._services.base.telemetry.count("Retried", actor=self._manifest.actor)
        self._receipts.append(self._services.base.outbox.send(delivery))

    def _checkpoint_if_due(self) -> None:
        if len(self._receipts) + len(self._requeued) >= CHUNK:
            self._checkpoint()
            if self._is_late():
                raise OutOfTime

    def _checkpoint(self) -> None:
        """See everything out, then note how far it has come."""
        base = self._services.base
        base.outbox.flush()
        for receipt in self._receipts:
            if receipt.error is not None:
                raise receipt.error
            base.telemetry.count("Sent", by=("kind", receipt.kind), actor=self._manifest.actor)
        self._receipts = []
        self._services.pending.requeue(self._manifest.actor, self._requeued, now=self._services.now())
        self._requeued = []
        self._services.records.advance(self._manifest.actor, self._manifest.number, self._saved_cursor, self._cursor)
        self._saved_cursor = self._cursor
        base.progress.flush()


def _skip(items: Iterable[object], count: int | None = None) -> None:
    for _ in islice(items, count):
        pass
