"""Coordinates a set of slices: waits, saves the decision and sends the envelope that leaves (`protocol §9`).

Each message about a set advances the set as far as possible. If the process dies, the next message continues from the saved
state: the redelivered message, a timeout check, or the sweep's check.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from asya.capabilities.fan_in.aws.items import SetRecord
from asya.capabilities.fan_in.aws.sets import LEASE_SECONDS, FanInSets, SetTimes
from asya.capabilities.fan_in.aws.slice_store import SliceStore
from asya.capabilities.fan_in.sets import ORIGIN, Decision, Fail, Merge, Wait, decide, origin_delivery, to_decision
from asya.function.aws.outbox import SendRefusedError
from asya.function.aws.receipt import Receipt
from asya.function.delivery import MAX_DELAY, Delivery
from asya.function.hop import Arrival, Hop
from asya.function.nack import ServiceError
from asya.function.targets import actual_actor
from asya.protocol.codec import decode
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import FanIn
from asya.protocol.slices import SetDue, SliceEnded, encode_message
from asya.protocol.times import format_time, parse_time
from asya.sidecar.lambdas import preflight
from asya.sidecar.lambdas.problems import report_problem
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports

# How long before a set without a timeout of its own was due an outage may have kept its slices, in seconds.
_WAITED_SECONDS = 3600.0

# A timeout check that is this late counts as lost, and the next arrival sends another one.
CHECK_GRACE = timedelta(minutes=2)
# A set that has longer than this waits without a check of its own: the sweep starts its check in time.
CHECK_HORIZON = timedelta(hours=1)
# A partial merge leaves the next actor its timeout, and this much for the way there.
_WAY_ON = timedelta(seconds=30)


class UnknownOriginError(ServiceError):
    """The tasks table did not say whether the origin of a set is canceled; the message at work comes again."""


@dataclass(frozen=True, slots=True)
class SetCoordinator:
    """Advances the sets of one fan-in actor."""

    services: Services
    sets: FanInSets
    slices: SliceStore
    rule: FanIn

    @property
    def actor(self) -> str:
        """The name of the fan-in actor."""
        return self.services.settings.actor

    def new_set_times(self, moment: datetime, deadline: datetime | None) -> SetTimes:
        """The timeout and expiry of a set whose first slice arrives now.

        Args:
            deadline: the deadline of the slice, which is the origin's; None without a deadline. A sender may forge it.
        """
        timeout = self.rule.timeout
        if timeout is None and deadline is not None:
            longest = max(self.rule.ttl, self.services.settings.table.retention.tasks)
            due_at = min(deadline, moment + timedelta(seconds=longest))
        else:
            due_at = moment + timedelta(seconds=self.rule.ttl if timeout is None else timeout)
        return SetTimes(due_at, due_at.timestamp() + self.rule.ttl)

    def origin_times(self, origin: Hop) -> SetTimes:
        """The timeout of a set whose slice 0 arrives now: it knows which actor comes next.

        A partial merge at the deadline would be too late for the next actor. So it comes earlier, but waits for at least half
        of the time that is left.
        """
        moment = self.services.now()
        times = self.new_set_times(moment, origin.deadline)
        if self.rule.on_failure != "partial" or self.rule.timeout is not None or origin.deadline is None:
            return times
        route = origin.envelope.route
        following = origin.mesh.actors.get(actual_actor(origin.envelope, route.next[0])) if route.next else None
        reserve = _WAY_ON + timedelta(seconds=following.timeout if following is not None else 0)
        left = max(origin.deadline - moment, timedelta(0))
        due_at = min(times.due_at, origin.deadline - min(reserve, left / 2))
        return SetTimes(due_at, times.expires_at, is_of_origin=True)

    def advance(
        self, record: SetRecord, *, check_arrived: bool = False, is_last_receive: bool = False
    ) -> list[Receipt]:
        """Advance a set as far as its state allows.

        Args:
            check_arrived: the message at work is the set's pending timeout check.
            is_last_receive: the message at work does not come again, so the set fails without the state of its origin.

        Raises:
            UnknownOriginError: the set would fail, and the state of its origin is unknown.
            Exception: a send or a write failed; the message at work must be redelivered.
        """
        moment = self.services.now()
        has_lease = False
        if record.state.delivered:
            return []
        if record.state.decision is None:
            action = decide(record.state, self.rule, now=moment)
            if isinstance(action, Wait):
                self._ensure_check(record, moment, check_arrived)
                return []
            lease_from = moment.timestamp() if record.state.has_origin else None
            decision = self._make_decision(record, action, moment, is_last_receive=is_last_receive)
            record, was_saved = self._save_decision(record.set_id, decision, lease_from)
            has_lease = was_saved and lease_from is not None
        if record.state.has_origin:
            return self._finish(record, has_lease=has_lease)
        if moment < record.state.due_at:
            self._ensure_check(record, moment, check_arrived)
        elif not record.state.delivered:
            self.sets.leave_index(record.set_id)
        return []

    def advance_after(
        self, record: SetRecord, ends: Iterable[SliceEnded], *, is_last_receive: bool = False
    ) -> list[Receipt]:
        """Advance a set after it counted the slices of a batch, including those that ended without a result.

        Args:
            is_last_receive: as for `advance`.

        Raises:
            UnknownOriginError: a slice was canceled, and the state of its origin is unknown.
            Exception: as `advance`.
        """
        endings = list(ends)
        if any(ended.slice_index == ORIGIN for ended in endings):
            self.origin_ended(record)
            current = self.sets.get(record.set_id)
            return self.advance(current, is_last_receive=is_last_receive) if current is not None else []
        has_canceled = any(ended.phase == "canceled" for ended in endings)
        if has_canceled and self._is_origin_canceled(record, is_last_receive=is_last_receive):
            moment = self.services.now()
            canceled = Decision(how="canceled", at=format_time(moment))
            record, was_saved = self._save_decision(record.set_id, canceled, moment.timestamp())
            return self._finish(record, has_lease=was_saved)
        return self.advance(record, is_last_receive=is_last_receive)

    def origin_ended(self, record: SetRecord) -> None:
        """Close a set whose slice 0 ended elsewhere; nothing leaves it."""
        if record.state.delivered:
            return
        gone = Decision(how="gone", at=format_time(self.services.now()))
        record, was_saved = self._save_decision(record.set_id, gone, None)
        if was_saved or not record.state.has_origin:
            self._mark_delivered(record.set_id)

    def _make_decision(
        self, record: SetRecord, action: Merge | Fail, moment: datetime, *, is_last_receive: bool
    ) -> Decision:
        if isinstance(action, Merge):
            return to_decision(action, None, now=moment)
        if self._is_origin_canceled(record, is_last_receive=is_last_receive):
            return Decision(how="canceled", at=format_time(moment))
        error: ErrorInfo | None = None
        if action.slice_index is not None:
            error = self.slices.load_error(record.set_id, action.slice_index, record.state.slice_count)
        if action.reason == "FanInTimeout":
            waited = timedelta(seconds=self.rule.timeout or _WAITED_SECONDS)
            action = replace(action, message=action.message + self.services.outages_since(record.state.due_at - waited))
        return to_decision(action, error, now=moment)

    def _save_decision(self, set_id: str, decision: Decision, lease_from: float | None) -> tuple[SetRecord, bool]:
        record, was_saved = self.sets.save_decision(set_id, decision, lease_from=lease_from)
        if was_saved:
            self.services.telemetry.count("Processed", by=("outcome", f"set_{decision.how}"))
            self.services.telemetry.log.info(
                "set decided", set_id=set_id, how=decision.how, reason=decision.reason, missing=list(decision.missing)
            )
        return record, was_saved

    def _is_origin_canceled(self, record: SetRecord, *, is_last_receive: bool) -> bool:
        """Whether slice 0 waits for a set without a decision, and its task or its root is canceled.

        Raises:
            UnknownOriginError: the state is unknown, and the message at work comes again.
        """
        if record.state.decision is not None or not record.state.has_origin:
            return False
        origin = self._origin(record)
        if not self.services.records_task(origin.envelope):
            return False
        state = preflight.task_states(self.services, [origin]).get(origin.envelope.id)
        if state is None and not is_last_receive:
            raise UnknownOriginError(
                f"set {record.set_id} is not decided: the tasks table did not say whether {origin.envelope.id!r} is canceled"
            )
        return state is not None and state.is_canceled

    def _finish(self, record: SetRecord, *, has_lease: bool) -> list[Receipt]:
        """Send the envelope of a decided set, then mark the set as delivered."""
        set_id, decision = record.set_id, record.state.decision
        if decision is None or record.state.delivered:
            return []
        until: float | None = record.lease_until
        if not has_lease:
            until = self.sets.take_lease(set_id, epoch_seconds=self.services.now().timestamp())
        if until is None:
            current = self.sets.get(set_id)
            if current is not None and not current.state.delivered:
                # Another process holds the lease. If it dies, this check arrives after the lease has ended.
                self._send_check(SetDue(set_id=set_id), math.ceil(LEASE_SECONDS) + 1)
            return []
        try:
            return [self._send_result(record, decision)]
        except Exception:
            self.sets.release_lease(set_id, until=until)
            raise

    def _send_result(self, record: SetRecord, decision: Decision) -> Receipt:
        origin = self._origin(record)
        items = {}
        if decision.how == "merged":
            stored = self.slices.load_all(record.set_id, record.state.slice_count)
            items = {index: decode(body).payload for index, body in stored if index != ORIGIN}
        try:
            receipt = self._send_now(origin_delivery(origin, decision, items))
        except SendRefusedError as error:
            # The message at work may be that of a slice, whose own task has ended.
            report_problem(self.services, origin.envelope, error, sent_at=origin.arrival.sent_at)
            raise
        self._mark_delivered(record.set_id)
        callback = self.services.callback(origin.envelope)
        if decision.how == "merged" and callback is not None:
            started_at = parse_time(origin.status.updated_at or decision.at)
            wait_ms = (parse_time(decision.at) - started_at).total_seconds() * 1000
            event = reports.completed(origin, None, now=self.services.now(), duration_ms=max(0.0, wait_ms))
            self.services.progress.report(callback, event)
        return receipt

    def _mark_delivered(self, set_id: str) -> None:
        self.sets.mark_delivered(set_id, expires_at=self.services.now().timestamp() + self.rule.ttl)

    def _origin(self, record: SetRecord) -> Hop:
        """The hop of the stored slice 0."""
        body = self.slices.load(record.set_id, ORIGIN, record.state.slice_count)
        mesh = self.services.settings.table
        arrival = Arrival(body=body, message_id="", sent_at=self.services.now(), size=len(body))
        return Hop.of(decode(body), self.actor, mesh.actors[self.actor], mesh, arrival)

    def _ensure_check(self, record: SetRecord, moment: datetime, check_arrived: bool) -> None:
        """Ensure that a timeout check is pending.

        The check is sent first and recorded second: a crash in between causes an extra check, never a missing one.
        """
        if record.state.due_at - moment > CHECK_HORIZON:
            return
        # Slice 0 may have moved the timeout before the pending check.
        latest = record.state.due_at + CHECK_GRACE + timedelta(seconds=1)
        is_pending = moment.timestamp() < record.check_until <= latest.timestamp()
        if is_pending and not check_arrived:
            return
        left = max(record.state.due_at - moment, timedelta(seconds=1))
        delay = math.ceil(min(left, MAX_DELAY).total_seconds())
        until = (moment + timedelta(seconds=delay) + CHECK_GRACE).timestamp()
        self._send_check(SetDue(set_id=record.set_id, until=until), delay)
        self.sets.record_check(record.set_id, until)

    def _send_check(self, check: SetDue, delay: int) -> None:
        self._send_now(Delivery(self.actor, encode_message(check), "later", delay=delay))

    def _send_now(self, delivery: Delivery) -> Receipt:
        """Send at once and require acceptance, because the next write relies on it."""
        receipt = self.services.outbox.send(delivery)
        self.services.outbox.flush()
        if receipt.problem is not None:
            raise receipt.problem
        return receipt
