"""Planted mistakes about sets: counting, merging and checking them (`protocol §9`)."""

from dataclasses import replace
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.fan_in.aws.slice_store import SliceStore
from asya.capabilities.fan_in.lambdas import fan_in, set_coordinator
from asya.capabilities.fan_in.lambdas.fan_in import SliceCounter, StoredSlice
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.capabilities.fan_in.lambdas.wiring import FanInSweep
from asya.capabilities.fan_in.sets import Decision
from asya.ends.lambdas import ends
from asya.function.aws.outbox import Outbox
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.protocol import headers
from asya.protocol.slices import SetDue, decode_message
from tests.simulation.mistake import Mistake, found_by, substitute, wrap
from tests.simulation.planted.replacements import change_headers, resolved, skip_claim


def _always_save_decision(real: Any, self: FanInSets, set_id: str, decision: Decision, **more: Any) -> Any:
    record, _ = real(self, set_id, decision, **more)
    return replace(record, state=replace(record.state, decision=decision)), True


def _acknowledge_uncounted(real: Any, self: SliceCounter, stored: StoredSlice) -> list[Receipt]:
    """The receipts of a message do not wait for the count."""
    real(self, stored)
    return []


def _count_duplicates(real: Any, self: FanInSets, set_id: str, slice_count: int, **more: Any) -> Any:
    """Count the number of slices, not their indexes."""
    before = self.get(set_id)
    known = before.state.arrived if before is not None else frozenset()
    more["arrived"] = {
        index if index not in known else min(set(range(slice_count)) - known, default=index)
        for index in more["arrived"]
    }
    return real(self, set_id, slice_count, **more)


def _count_slices_that_are_not_stored(real: Any, *args: Any, **more: Any) -> Any:
    try:
        return real(*args, **more)
    except (ClientError, BotoCoreError):
        return None


def _swap_slices(real: Any, origin: Any, decision: Any, items: dict[int, Any]) -> Any:
    first, second = items.get(1), items.get(2)
    swapped = items | ({1: second, 2: first} if first is not None and second is not None else {})
    return real(origin, decision, swapped)


def _leave_all_sets(real: Any, *args: Any) -> Delivery:
    delivery: Delivery = real(*args)
    return msgspec.structs.replace(delivery, body=change_headers(delivery.body, {headers.FAN_IN: None}))


def _send_without_set_checks(real: Any, self: Outbox, delivery: Delivery) -> Receipt:
    if isinstance(decode_message(delivery.body), SetDue):
        return resolved(delivery.kind)
    return real(self, delivery)  # type: ignore[no-any-return]


def _expire_after_the_arrival(real: Any, self: SetCoordinator, moment: Any, *args: Any) -> Any:
    return replace(real(self, moment, *args), expires_at=moment.timestamp() + self.rule.ttl)


MISTAKES = (
    Mistake(
        "expires a set by its arrival instead of its timeout",
        wrap(SetCoordinator, "new_set_times", _expire_after_the_arrival),
        seed=5,
    ),
    Mistake(
        "merges a set more than once",
        (
            wrap(FanInSets, "save_decision", _always_save_decision),
            substitute(FanInSets, "take_lease", lambda *_, **__: 1.0),
        ),
        "mixed",
        seed=20,
    ),
    Mistake("counts a duplicate as another slice", wrap(FanInSets, "count", _count_duplicates), seed=15),
    Mistake(
        "acknowledges slices whose count failed", wrap(SliceCounter, "add", _acknowledge_uncounted), "errors", seed=31
    ),
    Mistake("merges slices in another order", wrap(set_coordinator, "origin_delivery", _swap_slices), seed=11),
    Mistake("drops the header of the enclosing set", wrap(set_coordinator, "origin_delivery", _leave_all_sets), seed=5),
    Mistake("sends no messages about ended slices", substitute(ends, "slice_end_deliveries", lambda *_: ()), seed=5),
    Mistake(
        "stores slices without claiming their end", substitute(fan_in, "claim_end", skip_claim), "fault-free", seed=1
    ),
    Mistake(
        "checks no waiting sets",
        (wrap(Outbox, "send", _send_without_set_checks), substitute(FanInSweep, "sweep", lambda *_: None)),
        "errors",
        seed=28,
    ),
    # A failed call marks its service as off, so only a failure of S3 lets the count in DynamoDB go on.
    found_by(
        "counts slices that are not stored",
        wrap(SliceStore, "store", _count_slices_that_are_not_stored),
        "unit/asya/capabilities/fan_in/lambdas/test_fan_in_batches.py::test_a_slice_that_cannot_be_stored_counts_once_it_is",
    ),
)
