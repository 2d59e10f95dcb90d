"""Consumes the report queues: writes reports into tasks, keeps refused ones (`protocol §5`, reports; `§13`).

The age of messages without reports for this mesh says nothing about its ends: a message that a foreign gateway does not take
returns for days, and must not look like a backlog.

The function sends to no actor's queue. Reports are idempotent, so a message that is kept repeats its reports.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET, Raw

from asya.ends.aws.results import ResultIndex
from asya.function.aws import clients
from asya.function.aws.receipt import Receipt
from asya.function.aws.telemetry import Telemetry
from asya.function.hop import FIRST_SENDER
from asya.function.lambdas.batch import BatchProcessor, BatchResponse, Record, records
from asya.gateway.aws.refused_reports import RefusedReports, RefusedReportStore
from asya.gateway.ends_delay import LATE_AGE, LATE_WINDOW
from asya.gateway.report_messages import RefusedReport, ReportMessage, read_message
from asya.protocol import names
from asya.protocol.events import Report, TaskEvent
from asya.protocol.exact_json import encode_json
from asya.protocol.task_key import Subject
from asya.protocol.times import format_time
from asya.senders.aws.role_list import RoleList
from asya.senders.roles import role_id_of
from asya.senders.statements import UNLISTED
from asya.senders.task_keys import EntryKeys, runs_code
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.sweep_marks import EndsMarks, MarkKind
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.aws.tasks import ReportWriter
from asya.tasks.reporting.aws.foreign_reports import ForeignReports, Refusal

# A process stores each kind of mark at most this often.
MARK_INTERVAL = timedelta(seconds=10)


@dataclass(slots=True)
class SteadyReceipt:
    """Since when this process receives the messages of `x-ends` without an interruption and without a late end."""

    since: datetime | None = None
    received_at: datetime | None = None

    def receive(self, now: datetime, *, late: bool) -> bool:
        """Count a batch; returns whether receipt has been steady for as long as an end may wait."""
        if late or self.since is None or self.received_at is None or now - self.received_at > LATE_WINDOW:
            self.since = now
        self.received_at = now
        return now - self.since >= LATE_AGE


@dataclass(slots=True)
class EndsAges:
    """Stores the marks of one process; an outlet of `BatchProcessor` that is flushed before the reports are written.

    A process that dies while it writes a late end has then said that the end waits. A fresh message proves that the function
    works only once it is written, so its mark comes last.

    The table may be unavailable: then no mark is stored, and the deadline sweep waits.
    """

    marks: EndsMarks
    telemetry: Telemetry
    now: Callable[[], datetime]
    _late: set[str] = field(default_factory=set)
    _fresh: set[str] = field(default_factory=set)
    _has_foreign: bool = False
    _marked: dict[MarkKind, datetime] = field(default_factory=dict)
    _steady: SteadyReceipt = field(default_factory=SteadyReceipt)

    def begin(self) -> None:
        """Begin a batch."""
        self._late, self._fresh, self._has_foreign = set(), set(), False

    def received(self, record: Record, *, own: bool, foreign: bool) -> None:
        """Note the age of a message.

        Args:
            own: whether it has reports for this mesh.
            foreign: whether it has reports for other gateways.
        """
        if own:
            is_late = self.now() - record.arrival.sent_at > LATE_AGE
            (self._late if is_late else self._fresh).add(record.message_id)
        self._has_foreign = self._has_foreign or foreign

    def flush(self) -> None:
        """Store that late ends are here, before any of them is written."""
        if self._late:
            self._mark("late")

    def end(self, kept: Collection[str]) -> None:
        """Store that fresh messages were written. Messages for foreign gateways alone count by their steady receipt.

        Args:
            kept: the ids of the messages that stay on the queue.
        """
        is_steady = self._steady.receive(self.now(), late=bool(self._late))
        if self._fresh - set(kept) or (self._has_foreign and is_steady):
            self._mark("fresh")

    def _mark(self, kind: MarkKind) -> None:
        now = self.now()
        if (last := self._marked.get(kind)) is not None and now - last < MARK_INTERVAL:
            return
        try:
            self.marks.write(kind, now)
        except TaskStoreError as error:
            self.telemetry.log.warning("age of ends not stored", problem=str(error))
        else:
            self._marked[kind] = now


# An unexpected error may come from a faulty deployment, which operators undo within minutes. So the reports that raise one stay
# on their queue for this many receives, about ten minutes.
RECEIVES_BEFORE_REFUSAL = 10


@dataclass(frozen=True, slots=True)
class _Group:
    """The reports of one message."""

    reports: Sequence[Report]
    refuse: Callable[[str], None] | None
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class _Sender:
    """Who sent a message.

    Attributes:
        id: the `SenderId`.
        first: the `SenderId` that a sender of a dead letter names; empty without one.
    """

    id: str
    first: str


def _sender(item: Mapping[str, Any]) -> _Sender:
    first = item.get("messageAttributes", {}).get(FIRST_SENDER, {}).get("stringValue") or ""
    return _Sender(item["attributes"].get("SenderId", ""), first)


@dataclass(slots=True)
class Writes:
    """Collects the reports of a batch and writes them together; an outlet of `BatchProcessor`."""

    services: Services
    writer: ReportWriter
    waiting: list[_Group] = field(default_factory=list)

    def add(self, reports: Sequence[Report], refuse: Callable[[str], None] | None = None) -> Receipt:
        """Queue the reports of one message and return their receipt.

        Args:
            refuse: stores the reports with a problem. It is called if writing them raises an unexpected error, and raises
                ClientError or BotoCoreError itself. None keeps the message on its queue then.
        """
        group = _Group(reports, refuse, Receipt("task"))
        self.waiting.append(group)
        return group.receipt

    def flush(self) -> None:
        """Write all reports that can be written, and resolve the receipts. No error ends the invocation."""
        waiting, self.waiting = self.waiting, []
        try:
            self._write(waiting)
        except Exception as error:
            self.services.telemetry.log.warning("reports are written message by message", exc_info=error)
            for group in waiting:
                self._write_alone(group)

    def _write_alone(self, group: _Group) -> None:
        try:
            self._write([group])
        except Exception as error:  # noqa: BLE001 - see flush
            if group.refuse is None:
                group.receipt.resolve(error)
                return
            try:
                group.refuse(f"writing the reports raised {type(error).__name__}: {error}")
            except (ClientError, BotoCoreError) as problem:
                group.receipt.resolve(problem)
            else:
                group.receipt.resolve()

    def _write(self, groups: Sequence[_Group]) -> None:
        reports = [report for group in groups for report in group.reports]
        if not reports:
            return
        results = iter(self.writer.write(reports, self.services.now(), may_create=True))
        for group in groups:
            own_results = [result for _, result in zip(group.reports, results, strict=False)]
            open_results = [result for result in own_results if result.status != HTTPStatus.NO_CONTENT]
            first = open_results[0] if open_results else None
            group.receipt.resolve(TaskStoreError(f"the report on {first.id}: {first.error}") if first else None)


def _no_key(_: Report) -> None:
    """Check no key: IAM opens the queue of ends to functions without code of users, which may be of another version of the mesh."""


@dataclass(slots=True)
class ReportQueues:
    """The consumer of `x-reports` and `x-ends`.

    Attributes:
        roles: the roles of the mesh.
        index: writes the rows of the index of results that the ends of a batch carry.
    """

    services: Services
    writes: Writes
    foreign: ForeignReports
    refused: RefusedReportStore
    ages: EndsAges
    roles: RoleList
    index: ResultIndex

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process the messages of one queue.

        Raises:
            ValueError: the messages are of another queue.
        """
        queue = self._queue(event)
        senders = {item["messageId"]: _sender(item) for item in event["Records"]}
        items = records(event)
        processor = BatchProcessor(
            clients.sqs(),
            self.services.settings.queue_url(queue),
            (self.writes, self.foreign, self.index),
            self.services.telemetry,
            # The sweep of deadlines knows for three minutes that an end waits.
            slows_down=False,
        )
        if queue == names.ENDS:
            self.ages.begin()
            processor = processor.with_outlet(self.ages, first=True)
        try:
            answer = processor.process(items, lambda record: self._handle(queue, record, senders[record.message_id]))
            if queue == names.ENDS:
                self.ages.end({failure["itemIdentifier"] for failure in answer["batchItemFailures"]})
            return answer
        finally:
            self.services.telemetry.flush()

    def _queue(self, event: Mapping[str, Any]) -> str:
        """The name in the mesh of the queue that the messages come from."""
        arns = {item["eventSourceARN"] for item in event["Records"]}
        namespace = self.services.settings.namespace
        for queue in (names.REPORTS, names.ENDS):
            if {arn.rpartition(":")[2] for arn in arns} == {names.queue_name(namespace, queue)}:
                return queue
        raise ValueError(f"the messages of {', '.join(sorted(arns))} are of no report queue of the mesh {namespace!r}")

    def _handle(self, queue: str, record: Record, origin: _Sender) -> list[Receipt]:
        settings = self.services.settings
        sender, function = self._reporter(origin)
        message = read_message(
            record.arrival.body,
            queue,
            mesh=settings.table,
            function=function,
            now=self.services.now(),
            allowed_hosts=self.services.allowed_hosts,
            own_gateway=settings.gateway_url,
            check_key=self._key_check(function) if queue == names.REPORTS else _no_key,
        )

        def keep(refusals: Sequence[Refusal]) -> None:
            # One object holds all refused reports of a message.
            message.refused += [
                RefusedReport(problem=problem, report=Raw(encode_json(report))) for report, problem in refusals
            ]
            self._keep_refused(queue, record, sender, message)

        def refuse(problem: str) -> None:
            keep([(report, problem) for report in message.reports])

        if queue == names.ENDS:
            self.ages.received(record, own=bool(message.reports), foreign=bool(message.foreign))
        is_stubborn = record.arrival.receive_count >= RECEIVES_BEFORE_REFUSAL
        receipts = [self.writes.add(message.reports, refuse if is_stubborn else None)] if message.reports else []
        receipts += [self.foreign.add(address, reports, keep) for address, reports in message.foreign.items()]
        if settings.table.sink.index:
            receipts += map(self.index.add, message.rows)
        if message.refused or message.problem is not None:
            self._keep_refused(queue, record, sender, message)
        return receipts

    def _key_check(self, function: str | None) -> Callable[[Report], None]:
        """The check whether a sender holds the task of a report; a function without code of users has checked it."""
        keys = self.services.keys
        is_known = function not in (None, UNLISTED)
        if isinstance(keys, EntryKeys) or not is_known or not runs_code(self.services.settings.table, function or ""):
            return _no_key

        def check(report: Report) -> None:
            raw = report.key if isinstance(report.key, Raw) else None
            parent_id = report.parent_id if isinstance(report, TaskEvent) else UNSET
            keys.check_subject(raw, Subject(report.id, report.generation, parent_id))

        return check

    def _reporter(self, sender: _Sender) -> tuple[str, str | None]:
        """The `SenderId` of the reporter and the function of its role; the gateway names the first sender of a dead letter.

        Raises:
            ClientError, BotoCoreError: the list of roles cannot be read, so the message stays on the queue.
        """
        function = self.roles.function_of(role_id_of(sender.id))
        sender_id = sender.id
        if function == names.GATEWAY_API and sender.first:
            sender_id, function = sender.first, self.roles.function_of(role_id_of(sender.first))
        if function is None and not self.roles.is_complete():
            function = UNLISTED
        return sender_id, function

    def _keep_refused(self, queue: str, record: Record, sender: str, message: ReportMessage) -> None:
        """Keep what does not count.

        Raises:
            ClientError, BotoCoreError: the object cannot be written, so the message stays on the queue.
        """
        is_unreadable = message.problem is not None
        key = self.refused.save(
            RefusedReports(
                queue=queue,
                message_id=record.message_id,
                sender=sender,
                sent_at=format_time(record.arrival.sent_at),
                reports=tuple(message.refused),
                problem=message.problem,
                body=record.arrival.body.decode("utf-8", "replace") if is_unreadable else None,
            )
        )
        telemetry = self.services.telemetry
        telemetry.count("ReportsRefused", max(1, len(message.refused)))
        telemetry.log.warning(
            "reports refused",
            queue=queue,
            message_id=record.message_id,
            sender=sender,
            problem=message.problem or message.refused[0].problem,
            object=key,
        )
