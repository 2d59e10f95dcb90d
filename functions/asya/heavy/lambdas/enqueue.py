"""The sidecar of a heavy actor: makes envelopes pending and requests a dispatch (`protocol §10`)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from asya.function.aws.receipt import Receipt
from asya.function.hop import Diversion, Hop
from asya.function.lambdas.batch import BatchResponse, Record, records, release_locals
from asya.function.sqs import proven_tenant, queue_group
from asya.heavy.lambdas.services import SparkServices, member_of
from asya.heavy.run_formation import batch_of, spark_job
from asya.heavy.run_sizes import UnfitSizeError, measure
from asya.protocol import states
from asya.protocol.codec import encode
from asya.protocol.job_runs import Member
from asya.protocol.times import parse_time
from asya.sidecar import outcome
from asya.sidecar.lambdas.intake import Intake, receive_batch
from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, record_diversion, trace_hop
from asya.tasks.reporting import reports


@dataclass(frozen=True, slots=True)
class _Ready:
    """A hop that may become pending, without its payload; its envelope is stored."""

    hop: Hop
    member: Member
    tenant: str

    @property
    def identity(self) -> tuple[str, int, int, int]:
        """Identifies the attempt: id, generation, position, attempt."""
        return self.member.id, self.member.generation, self.member.position, self.member.attempt


_Entry = _Ready | Diversion | Exception


@dataclass(frozen=True, slots=True)
class Enqueuer:
    """Processes the batches of one heavy actor."""

    services: SparkServices

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Processes one batch: makes all envelopes pending, sends one request, then acknowledges the messages."""
        base = self.services.base
        items = base.admission.admit(records(event))
        record_arrivals(base, items)
        intake = receive_batch(base, items)
        entries = {record.message_id: self._start(intake, record) for record in items}
        ready = {message_id: entry for message_id, entry in entries.items() if isinstance(entry, _Ready)}
        problems, count = self._make_pending(ready)
        entries |= problems
        request = self._request(count) if ready else None
        try:
            return intake.process(
                items, lambda record: self._finish(entries[record.message_id], request), kept=intake.report_problem
            )
        finally:
            base.progress.flush()
            base.telemetry.flush()

    def _start(self, intake: Intake, record: Record) -> _Entry:
        """Steps 5.1 to 5.6 for one message; an error keeps the message on the queue."""
        try:
            return self._store(intake, record)
        except Exception as error:  # noqa: BLE001 - raised again when this message is acknowledged
            release_locals(error)
            return error

    def _store(self, intake: Intake, record: Record) -> _Ready | Diversion:
        """Starts the hop and stores its envelope, so that the batch holds one payload at a time."""
        base = self.services.base
        hop = intake.start(record)
        if isinstance(hop, Diversion):
            return hop
        spec = self.services.settings.table.actors[base.settings.actor]
        member, job = member_of(hop, base.report_url(hop.envelope), admitted_at=base.now()), spark_job(hop.actor, spec)
        try:
            member = replace(member, measure=measure(hop.envelope.payload, hop.actor, job))
        except UnfitSizeError as unfit:
            return self._unfit(hop, unfit)
        if job.isolation != "none":
            member = replace(member, tenant=proven_tenant(hop.envelope, spec))
        stored = self.services.pending.store(base.settings.actor, member, encode(hop.envelope))
        return _Ready(hop.without_payload(), stored, queue_group(hop.envelope, spec) or "")

    def _unfit(self, hop: Hop, unfit: UnfitSizeError) -> Diversion:
        """The failure of an envelope whose payload names no size."""
        jitter = self.services.base.environment.random()
        failed = outcome.failed(
            hop, unfit.error, now=self.services.now(), jitter=jitter, frames_sent=int(hop.is_late_copy)
        )
        url = self.services.base.report_url(hop.envelope)
        if failed.retry is not None and url is not None:
            self.services.base.progress.report(url, reports.retried(hop, failed.retry, now=self.services.now()))
        return Diversion(hop.envelope.id, (failed,), unfit.error.type)

    def _make_pending(self, ready: Mapping[str, _Ready]) -> tuple[dict[str, Exception], int]:
        """Makes hops pending.

        Returns:
            The errors by message id, and the number of attempts that were not pending before.
        """
        base = self.services.base
        # One batch may deliver an attempt twice; it becomes pending once, and both messages are acknowledged.
        attempts = {entry.identity: entry for entry in ready.values()}
        try:
            members = self._with_rounds(list(attempts.values()))
        except Exception as error:  # noqa: BLE001 - keeps the messages on the queue
            return dict.fromkeys(ready, error), 0
        enqueued = self.services.pending.enqueue(base.settings.actor, members, now=base.now())
        answers = dict(zip(attempts, enqueued, strict=True))
        for identity, answer in answers.items():
            if answer is False:
                base.telemetry.log.info("attempt was pending before", envelope_id=identity[0], attempt=identity[-1])
        problems = {message_id: answers[entry.identity] for message_id, entry in ready.items()}
        errors = {message_id: problem for message_id, problem in problems.items() if isinstance(problem, Exception)}
        return errors, sum(answer is True for answer in answers.values())

    def _with_rounds(self, entries: Sequence[_Ready]) -> list[Member]:
        """The members, each with the next round of its tenant if the actor has `fair_by` (`protocol §10.fair`)."""
        members = [entry.member for entry in entries]
        actor, now = self.services.settings.actor, self.services.now()
        if not entries or self.services.settings.table.actors[actor].fair_by is None:
            return members
        rounds = self.services.rounds.take(actor, Counter(entry.tenant for entry in entries), now=now)
        for place, entry in enumerate(entries):
            members[place] = replace(entry.member, round=rounds[entry.tenant])
            rounds[entry.tenant] += 1
        return members

    def _request(self, count: int) -> Exception | None:
        """Ensures a dispatch request, also for redeliveries, because their first request may be lost.

        Args:
            count: the number of attempts that became pending now.
        """
        settings = self.services.settings
        actor, spec, now = settings.actor, settings.table.actors[settings.actor], self.services.now()
        try:
            at_once = spec.spark is not None and spec.spark.linger > 0 and self._has_resident(actor)
            self.services.requests.arrive(actor, count, batch_of(actor, spec), now=now, at_once=at_once)
        except Exception as error:  # noqa: BLE001 - keeps the messages on the queue
            return error
        return None

    def _has_resident(self, actor: str) -> bool:
        return any(not resident.is_closed for resident in self.services.residents.all(actor))

    def _finish(self, entry: _Entry, request: Exception | None) -> list[Receipt]:
        """Reports or diverts one hop before its message is acknowledged.

        Raises:
            Exception: if the message must stay on the queue.
        """
        base = self.services.base
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, Diversion):
            record_diversion(base, entry.why)
            base.telemetry.log.warning("envelope diverted", why=entry.why, envelope_id=entry.envelope_id)
            return [base.outbox.send(delivery) for delivery in entry.deliveries]
        if request is not None:
            raise request
        if entry.member.report_url is not None and not entry.hop.is_late_copy:
            base.progress.report(entry.member.report_url, reports.received(entry.hop, now=base.now()))
        trace_hop(base, entry.hop, parse_time(entry.member.admitted_at), action="receive")
        base.telemetry.count("Processed", by=("outcome", states.PENDING))
        return []
