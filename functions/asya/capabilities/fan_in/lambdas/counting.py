"""Counts the slices of a batch in their sets: one write for each set, after every slice is stored (`protocol §9.count`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from asya.capabilities.fan_in.aws.items import SetRecord
from asya.capabilities.fan_in.aws.sets import SetTimes, SliceCountError
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.function.aws.receipt import Receipt
from asya.function.lambdas.tracebacks import release_locals
from asya.protocol.slices import SliceEnded, SliceHeader

# Slices that are not counted yet stay in memory. A batch of inline messages has not much more than this.
_HELD_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredSlice:
    """A slice, or the end of one, that is stored and not counted yet.

    Attributes:
        then: continues with the set that has counted the slice.
        refused: ends a slice that does not belong to its set.
        size: the bytes of the envelope that `then` and `refused` hold.
        is_last_receive: whether its message does not come again.
    """

    info: SliceHeader | SliceEnded
    times: SetTimes
    then: Callable[[SetRecord], list[Receipt]]
    refused: Callable[[SliceCountError], list[Receipt]]
    size: int = 0
    is_last_receive: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    stored: StoredSlice
    counted: Receipt
    receipts: list[Receipt]


@dataclass(slots=True)
class SliceCounter:
    """Collects the stored slices of a batch, then counts those of one set together and advances the set.

    It is the first outlet of the batch: what it queues in the others is sent with them. Large slices are counted before the
    batch ends, so that it needs the memory of its largest envelope.
    """

    coordinator: SetCoordinator
    _entries: dict[tuple[str, int], list[_Entry]] = field(default_factory=dict)
    _held: int = 0

    def add(self, stored: StoredSlice) -> list[Receipt]:
        """Add a stored slice; the next flush counts it. Over 1 MiB of slices are flushed at once.

        Returns:
            The receipts of its message. The flush replaces the first one by those of everything that the slice causes.
        """
        receipts = [counted := Receipt("slice")]
        group = self._entries.setdefault((stored.info.set_id, stored.info.slice_count), [])
        group.append(_Entry(stored, counted, receipts))
        self._held += stored.size
        if self._held > _HELD_LIMIT:
            self.flush()
        return receipts

    def flush(self) -> None:
        """Count all slices so far; on return, their receipts are resolved or queued in another outlet."""
        entries, self._entries, self._held = self._entries, {}, 0
        for group in entries.values():
            self._process(group)
            for entry in group:
                for receipt in (entry.counted, *entry.receipts):
                    # A kept error must not keep the envelopes of its set alive.
                    if receipt.error is not None:
                        release_locals(receipt.error)

    def _process(self, group: Sequence[_Entry]) -> None:
        try:
            record = self._count(group)
        except SliceCountError as error:
            for entry in group:
                _complete(entry, lambda entry=entry, error=error: entry.stored.refused(error))  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - the messages of this set stay on the queue, no others
            for entry in group:
                entry.counted.resolve(error)
        else:
            for entry in group:
                _complete(entry, lambda entry=entry: entry.stored.then(record))  # type: ignore[misc]
            self._advance(group, record)

    def _count(self, group: Sequence[_Entry]) -> SetRecord:
        infos = [entry.stored.info for entry in group]
        first = group[0].stored
        return self.coordinator.sets.count(
            first.info.set_id,
            first.info.slice_count,
            arrived={info.slice_index for info in infos if isinstance(info, SliceHeader)},
            lost={info.slice_index for info in infos if isinstance(info, SliceEnded)},
            actor=self.coordinator.actor,
            times=next((entry.stored.times for entry in group if entry.stored.times.is_of_origin), first.times),
        )

    def _advance(self, group: Sequence[_Entry], record: SetRecord) -> None:
        """Advance the set once; if that fails, the ends of the group stay on the queue and repeat it, or its last slice.

        A slice would not repeat what the set does after an end.
        """
        ends = [entry.stored.info for entry in group if isinstance(entry.stored.info, SliceEnded)]
        is_last_receive = any(entry.stored.is_last_receive for entry in group)
        try:
            group[-1].receipts.extend(self.coordinator.advance_after(record, ends, is_last_receive=is_last_receive))
        except Exception as error:  # noqa: BLE001 - it belongs to this set only
            ended = [entry for entry in group if isinstance(entry.stored.info, SliceEnded)]
            for entry in ended or group[-1:]:
                entry.receipts.append(failed := Receipt("slice"))
                failed.resolve(error)


def _complete(entry: _Entry, action: Callable[[], list[Receipt]]) -> None:
    try:
        entry.receipts.extend(action())
    except Exception as error:  # noqa: BLE001 - it belongs to this message only
        entry.counted.resolve(error)
    else:
        # Nothing was sent for it, so it is no part of the metric `Sent`.
        entry.receipts.remove(entry.counted)
