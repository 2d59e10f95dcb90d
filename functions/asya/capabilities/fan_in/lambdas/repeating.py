"""Opens a failed set again as a new one: copies kept results and sends the other slices (`protocol §12.set`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from asya.capabilities.fan_in import repeats
from asya.capabilities.fan_in.aws.set_repeats import SetRepeats
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.capabilities.fan_in.repeats import SetRepeat
from asya.capabilities.fan_in.sets import ORIGIN
from asya.function.aws.receipt import Receipt
from asya.function.hop import Hop
from asya.function.targets import TargetError, actual_actor
from asya.protocol.frame import Frame
from asya.sidecar import outcome, slices
from asya.tasks.reporting import reports

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
        set_id = repeats.new_set_id(hop.envelope)
        record = self.records.load(repeats.record_id(hop.envelope))
        if record is None:
            raise TargetError(f"no replay is recorded for the set of {hop.envelope.id!r}; start it with `asya replay`")
        self._report_start(hop)
        current = self.coordinator.sets.get(set_id)
        if current is not None and (current.state.has_origin or current.state.delivered):
            return []
        fan_out = repeats.fan_out_hop(hop)
        frames = self._frames(fan_out, record, set_id)
        slices.check_frames(fan_out, frames)
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
        url, moment = services.callback(hop.envelope), services.now()
        if url is not None:
            services.progress.report(url, reports.received(hop, now=moment))
            services.progress.report(url, reports.processing(hop, now=moment))

    def _frames(self, fan_out: Hop, record: SetRepeat, set_id: str) -> list[Frame]:
        """The frames of the old fan-out as slices of the new set, stored under the new task for a later replay."""
        buffer = self.coordinator.services.frame_buffer
        stored = buffer.load(fan_out.envelope)
        if stored is not None:
            return stored
        old = repeats.kept_hop(fan_out.envelope, record)
        # A fan-out that was itself repeated has its frames from this actor, any other one from its own.
        kept = buffer.load(old)
        if kept is None:
            writer = actual_actor(fan_out.envelope, fan_out.envelope.route.curr)
            kept = buffer.load(old, writer)
        if kept is None:
            raise TargetError(f"the frames that {record.origin_id!r} gave at hop {record.position} are no longer kept")
        return buffer.save(fan_out.envelope, repeats.repeated_frames(kept, set_id, fan_out.envelope.id))

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
