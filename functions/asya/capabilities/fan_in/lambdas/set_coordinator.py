"""Coordinates a set of slices, and opens a failed set again as a new one (`protocol §9`, `§12.set`).

Each message about a set advances the set as far as possible. If the process dies, the next message continues from the saved
state: the redelivered message, a timeout check, or the sweep's check.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msgspec import Raw

from asya.capabilities.fan_in import sets
from asya.capabilities.fan_in.aws.sets import LEASE_SECONDS, FanInSets, SetRecord, SetRepeats, SetTimes
from asya.capabilities.fan_in.aws.slice_store import SliceStore
from asya.capabilities.fan_in.sets import (
    ORIGIN,
    Decision,
    Fail,
    Incomplete,
    Merge,
    SetRepeat,
    collected,
    decide,
    origin_delivery,
    to_decision,
)
from asya.function.aws.bounded_reads import largest_set
from asya.function.aws.outbox import SendRefusedError
from asya.function.aws.receipt import Receipt
from asya.function.hop import MAX_DELAY, Arrival, Delivery, Hop
from asya.function.nack import ServiceError
from asya.function.targets import TargetError, actual_actor, check_target, check_way
from asya.protocol import states
from asya.protocol.codec import decode
from asya.protocol.envelope import Frame
from asya.protocol.errors import ErrorInfo
from asya.protocol.mesh_table import FanIn
from asya.protocol.slices import SetDue, SliceEnded, encode_message
from asya.protocol.times import format_time, parse_time
from asya.sidecar import outcome, slices
from asya.sidecar.lambdas import intake
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
            if isinstance(action, Incomplete):
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
        has_canceled = any(ended.phase == states.CANCELED for ended in endings)
        if has_canceled and self._is_origin_canceled(record, is_last_receive=is_last_receive):
            moment = self.services.now()
            canceled = Decision(how=states.CANCELED, at=format_time(moment))
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
            return Decision(how=states.CANCELED, at=format_time(moment))
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
        state = intake.task_states(self.services, [origin]).get(origin.envelope.id)
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
        items: dict[int, Raw] | ErrorInfo = {}
        if decision.how == "merged":
            items = collected(self.slices.load_all(record.set_id, record.state.slice_count, largest_set()))
        try:
            receipt = self._send_now(origin_delivery(origin, decision, items))
        except SendRefusedError as error:
            # The message at work may be that of a slice, whose own task has ended.
            report_problem(self.services, origin.envelope, error, sent_at=origin.arrival.sent_at)
            raise
        self._mark_delivered(record.set_id)
        url = self.services.report_url(origin.envelope)
        if decision.how == "merged" and url is not None:
            started_at = parse_time(origin.status.updated_at or decision.at)
            wait_ms = (parse_time(decision.at) - started_at).total_seconds() * 1000
            event = reports.completed(origin, None, now=self.services.now(), duration_ms=max(0.0, wait_ms))
            self.services.progress.report(url, event)
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


# Slices are held in memory until they are sent.
_FLUSH_AFTER = 100


@dataclass(frozen=True, slots=True)
class SetRepeater:
    """Repeats a fan-out under the id of a new task.

    Every step may be repeated: all ids derive from the new task, copies are put once, and slice 0 leaves last. So a set
    that has its slice 0 has sent all of its slices.
    """

    coordinator: SetCoordinator
    records: SetRepeats

    def repeat(self, hop: Hop) -> list[Receipt]:
        """Send the slices of a set again, except those whose results are kept.

        Raises:
            TargetError: nothing is recorded for this envelope, or its frames are not kept or not valid here.
            Exception: a call failed; the message must be redelivered.
        """
        set_id = sets.new_set_id(hop.envelope)
        record = self.records.load(sets.record_id(hop.envelope))
        if record is None:
            raise TargetError(f"no replay is recorded for the set of {hop.envelope.id!r}; start it with `asya replay`")
        self._report_start(hop)
        current = self.coordinator.sets.get(set_id)
        if current is not None and (current.state.has_origin or current.state.delivered):
            return []
        fan_out = sets.fan_out_hop(hop)
        frames = self._frames(fan_out, record, set_id)
        slices.check_frames(fan_out, frames)
        _check_ways(fan_out, frames)
        kept = self._copy_results(hop, record, set_id, len(frames)) if record.keeps_results else frozenset()
        again = [index for index in range(1, len(frames)) if index not in kept]
        self.coordinator.services.telemetry.log.info(
            "fan-out repeated", envelope_id=hop.envelope.id, set_id=set_id, copied=len(kept), again=len(again)
        )
        receipts: list[Receipt] = []
        for start in range(0, len(again), _FLUSH_AFTER):
            receipts += self._send(fan_out, frames, again[start : start + _FLUSH_AFTER])
        return [*receipts, *self._send(fan_out, frames, [ORIGIN])]

    def _report_start(self, hop: Hop) -> None:
        """Report that the new task runs: its slices may take hours, and the set reports nothing before it merges.

        A redelivery reports it too, because the process may have died before it had sent the report.
        """
        services = self.coordinator.services
        url, moment = services.report_url(hop.envelope), services.now()
        if url is not None:
            services.progress.report(url, reports.received(hop, now=moment))
            services.progress.report(url, reports.processing(hop, now=moment))

    def _frames(self, fan_out: Hop, record: SetRepeat, set_id: str) -> list[Frame]:
        """The frames of the old fan-out as slices of the new set, stored under the new task for a later replay."""
        buffer = self.coordinator.services.frame_buffer
        stored = buffer.load(fan_out.envelope)
        if stored is not None:
            return stored
        old = sets.kept_hop(fan_out.envelope, record)
        # A fan-out that was itself repeated has its frames from this actor, any other one from its own.
        kept = buffer.load(old)
        if kept is None:
            writer = actual_actor(fan_out.envelope, fan_out.envelope.route.curr)
            kept = buffer.load(old, writer)
        if kept is None:
            raise TargetError(f"the frames that {record.origin_id!r} gave at hop {record.position} are no longer kept")
        return buffer.save(fan_out.envelope, sets.repeated_frames(kept, set_id, fan_out.envelope.id))

    def _copy_results(self, hop: Hop, record: SetRepeat, set_id: str, slice_count: int) -> frozenset[int]:
        """Copy the stored results of the old set and count them in the new one."""
        coordinator = self.coordinator
        times = coordinator.new_set_times(coordinator.services.now(), hop.deadline)
        copied = coordinator.slices.copy_results(record.set_id, set_id, slice_count, expires_at=times.expires_at)
        if copied:
            coordinator.sets.count(set_id, slice_count, arrived=copied, actor=coordinator.actor, times=times)
        return copied

    def _send(self, fan_out: Hop, frames: Sequence[Frame], indices: Sequence[int]) -> list[Receipt]:
        services = self.coordinator.services
        moment = services.now()
        receipts = [services.outbox.send(outcome.frame(fan_out, frames[index], index, now=moment)) for index in indices]
        services.outbox.flush()
        problem = next((receipt.problem for receipt in receipts if receipt.problem is not None), None)
        if problem is not None:
            raise problem
        return receipts


def _check_ways(fan_out: Hop, frames: Sequence[Frame]) -> None:
    """Check that the actor that fanned out may send its frames where they lead: it has written them.

    Raises:
        TargetError: it may not, or the mesh has no such actor any more.
    """
    writer = check_target(fan_out.mesh, actual_actor(fan_out.envelope, fan_out.envelope.route.curr))
    for frame in frames:
        check_way(fan_out.mesh, fan_out.envelope, (writer,), frame.next or (), continued=True)
