"""Looking after one set of slices: waiting, deciding, and letting what becomes of it leave (`protocol §9`).

Whoever brings news of a set settles it; a process that dies at any point leaves a state from which the next one goes on: the
redelivered message, a look at the clock, or the sweep.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.fan_in.aws.items import SetRecord
from asya.fan_in.aws.sets import LEASE_SECONDS, FanInSets, Times
from asya.fan_in.sets import ORIGIN, Decision, Fail, Merge, Wait, decided, judge, leaving
from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import LONGEST_DELAY, Delivery
from asya.messaging.hop import Arrival, Hop
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import FanIn
from asya.protocol.slices import SetDue, encode_message
from asya.protocol.times import format_time, parse_time
from asya.reporting import reports
from asya.sidecar.lambdas import preflight
from asya.sidecar.lambdas.services import Services

# A look that is so late has been lost, and the next arrival sends another.
LOOK_GRACE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class SetCoordinator:
    """The sets of one fan-in actor."""

    services: Services
    sets: FanInSets
    rule: FanIn

    @property
    def actor(self) -> str:
        """The fan-in actor."""
        return self.services.settings.actor

    def times(self, moment: datetime) -> Times:
        """What a set whose first slice arrives now is given."""
        due_at = moment + timedelta(seconds=self.rule.timeout)
        return Times(due_at, due_at.timestamp() + self.rule.ttl)

    def settle(self, record: SetRecord, *, look_is_over: bool = False) -> list[Receipt]:
        """Do what is to be done for a set as it is now.

        Args:
            look_is_over: the look that was on its way has just come.

        Raises:
            Exception: something could not be sent or written; the message that brought the news has to come again.
        """
        moment = self.services.now()
        has_lease = False
        if record.state.delivered:
            return []
        if record.state.decision is None:
            verdict = judge(record.state, self.rule, now=moment)
            if isinstance(verdict, Wait):
                self._ensure_look(record, moment, look_is_over)
                return []
            lease_from = moment.timestamp() if record.state.has_origin else None
            decision = self._decision(record, verdict, moment)
            record, is_ours = self._decide(record.set_id, decision, lease_from)
            has_lease = is_ours and lease_from is not None
        if record.state.has_origin:
            return self._finish(record, has_lease=has_lease)
        if moment < record.state.due_at:
            self._ensure_look(record, moment, look_is_over)
        elif not record.state.delivered:
            self.sets.retire(record.set_id)
        return []

    def origin_ended(self, record: SetRecord) -> None:
        """Slice 0 has ended elsewhere: nothing more comes of its set."""
        if record.state.delivered:
            return
        gone = Decision(how="gone", at=format_time(self.services.now()))
        record, is_ours = self._decide(record.set_id, gone, None)
        if is_ours or not record.state.has_origin:
            self._mark_delivered(record.set_id)

    def slice_canceled(self, record: SetRecord) -> list[Receipt]:
        """A canceled slice closes nothing; but if that is because its origin was, the origin need not wait any longer."""
        if record.state.decision is not None or not record.state.has_origin or not self._is_canceled(record):
            return []
        moment = self.services.now()
        canceled = Decision(how="canceled", at=format_time(moment))
        record, is_ours = self._decide(record.set_id, canceled, moment.timestamp())
        return self._finish(record, has_lease=is_ours)

    def _decision(self, record: SetRecord, verdict: Merge | Fail, moment: datetime) -> Decision:
        if isinstance(verdict, Merge):
            return decided(verdict, None, now=moment)
        if record.state.has_origin and self._is_canceled(record):
            return Decision(how="canceled", at=format_time(moment))
        error: ErrorInfo | None = None
        if verdict.slice_index is not None:
            error = self.sets.error(record.set_id, verdict.slice_index)
        return decided(verdict, error, now=moment)

    def _decide(self, set_id: str, decision: Decision, lease_from: float | None) -> tuple[SetRecord, bool]:
        record, is_ours = self.sets.decide(set_id, decision, lease_from=lease_from)
        if is_ours:
            self.services.telemetry.count("Processed", by=("outcome", f"set_{decision.how}"))
            self.services.telemetry.log.info(
                "set decided", set_id=set_id, how=decision.how, reason=decision.reason, missing=list(decision.missing)
            )
        return record, is_ours

    def _is_canceled(self, record: SetRecord) -> bool:
        origin = self._origin(record.set_id)
        state = preflight.task_states(self.services, [origin]).get(origin.envelope.id)
        return state is not None and state.is_canceled

    def _finish(self, record: SetRecord, *, has_lease: bool) -> list[Receipt]:
        """Let the one envelope leave that the decision is about, then mark the set as done."""
        set_id, decision = record.set_id, record.state.decision
        if decision is None or record.state.delivered:
            return []
        if not has_lease and not self.sets.take_lease(set_id, epoch_seconds=self.services.now().timestamp()):
            fresh = self.sets.get(set_id)
            if fresh is not None and not fresh.state.delivered:
                # Another is at it; should it die, this look comes when its lease is over.
                self._send_look(SetDue(set_id=set_id), math.ceil(LEASE_SECONDS) + 1)
            return []
        try:
            return [self._let_leave(set_id, decision)]
        except Exception:
            self.sets.release(set_id)
            raise

    def _let_leave(self, set_id: str, decision: Decision) -> Receipt:
        origin = self._origin(set_id)
        items = {}
        if decision.how == "merged":
            items = {index: decode(body).payload for index, body in self.sets.slices(set_id) if index != ORIGIN}
        receipt = self._sent(leaving(origin, decision, items))
        self._mark_delivered(set_id)
        callback = self.services.callback(origin.envelope)
        if decision.how == "merged" and callback is not None:
            began = parse_time(origin.status.updated_at or decision.at)
            waited = (parse_time(decision.at) - began).total_seconds() * 1000
            event = reports.completed(origin, None, now=self.services.now(), duration_ms=max(0.0, waited))
            self.services.progress.report(callback, event)
        return receipt

    def _mark_delivered(self, set_id: str) -> None:
        self.sets.mark_delivered(set_id, expires_at=self.services.now().timestamp() + self.rule.ttl)

    def _origin(self, set_id: str) -> Hop:
        """Slice 0 as it was stored."""
        body = self.sets.slice(set_id, ORIGIN)
        mesh = self.services.settings.table
        arrival = Arrival(body=body, message_id="", sent_at=self.services.now(), size=len(body))
        return Hop.of(decode(body), self.actor, mesh.actors[self.actor], mesh, arrival)

    def _ensure_look(self, record: SetRecord, moment: datetime, look_is_over: bool) -> None:
        """Make sure that a look at the clock is on its way: sent first, noted second, so that it can only be one too many."""
        if record.look_until > moment.timestamp() and not look_is_over:
            return
        left = max(record.state.due_at - moment, timedelta(seconds=1))
        delay = math.ceil(min(left, LONGEST_DELAY).total_seconds())
        until = (moment + timedelta(seconds=delay) + LOOK_GRACE).timestamp()
        self._send_look(SetDue(set_id=record.set_id, until=until), delay)
        self.sets.note_look(record.set_id, until)

    def _send_look(self, look: SetDue, delay: int) -> None:
        self._sent(Delivery(self.actor, encode_message(look), "later", delay=delay))

    def _sent(self, delivery: Delivery) -> Receipt:
        """Send at once and see that it was taken: what follows is written only then."""
        receipt = self.services.outbox.send(delivery)
        self.services.outbox.flush()
        if receipt.problem is not None:
            raise receipt.problem
        return receipt
