"""The items of waiting calls in the tasks table (`protocol §13.waits`).

`asya.gateway.waits` states what they mean. Items: `pk` = name of the pool, `sk` = `slot#{number:04d}`, with the call that holds
the slot as `holder`.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from asya.function.aws.table import Table, delete, in_partition, put
from asya.function.aws.table_items import Key
from asya.function.lambdas.environment import Environment
from asya.gateway.waits import LEASE, SlotPool, slot_pools
from asya.protocol.mesh_table import Gateway
from asya.tasks.aws.table_calls import table_errors
from asya.tasks.aws.task_store import TaskStoreError

_SLOT = "slot#"
# Writes after which a call that lost each of them to another call is refused.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class _Slot:
    pool: str
    number: int

    @property
    def key(self) -> Key:
        return Key(self.pool, f"{_SLOT}{self.number:04d}")


@dataclass(frozen=True, slots=True)
class WaitSlots:
    """The slots of a mesh's waiting calls.

    Attributes:
        table: the tasks table.
        warn: logs a slot that could not be freed.
    """

    table: Table
    limits: Gateway
    environment: Environment
    warn: Callable[[str], None]

    @contextmanager
    def hold(self, principal: str, now: datetime) -> Iterator[None]:
        """Hold a slot of the caller and one of the mesh while a call waits.

        Raises:
            ApiError: 429 if all slots of the caller or of the mesh are taken.
            TaskStoreError: the table is unavailable.
        """
        holder = self.environment.new_span()
        held: list[_Slot] = []
        try:
            for pool in slot_pools(principal, self.limits):
                slot = self._take(pool, holder, now)
                if slot is None:
                    raise pool.refusal()
                held.append(slot)
            yield
        finally:
            for slot in reversed(held):
                self._free(slot, holder)

    def _take(self, pool: SlotPool, holder: str, now: datetime) -> _Slot | None:
        """Take a slot; None if all are taken, or if other calls won each write."""
        guess = _Slot(pool.name, next(pool.free((), self.environment.random())))
        if self._put(guess, holder, now):
            return guess
        free = pool.free(self._taken(pool, now), self.environment.random())
        slots = (_Slot(pool.name, number) for number in islice(free, _TRIES))
        return next((slot for slot in slots if self._put(slot, holder, now)), None)

    def _put(self, slot: _Slot, holder: str, now: datetime) -> bool:
        """Write a slot that is free, expired, or this holder's own after a lost answer."""
        expires_at = math.ceil(now.timestamp() + LEASE)
        change = put(slot.key, {"holder": holder, "expires_at": expires_at}).only_if(
            "attribute_not_exists(pk) OR expires_at <= :now OR holder = :holder",
            now=int(now.timestamp()),
            holder=holder,
        )
        with table_errors("take a slot of a waiting call"):
            return bool(self.table.write(change))

    def _taken(self, pool: SlotPool, now: datetime) -> set[int]:
        """The numbers of the taken slots; a pool has at most 1,000 small items, which are one page."""
        with table_errors("read the slots of waiting calls"):
            # A task may have the name of the pool as its id.
            items = self.table.page(in_partition(pool.name, _SLOT)).items
        return {
            int(item.key.sk.removeprefix(_SLOT)) for item in items if item.integer("expires_at") > int(now.timestamp())
        }

    def _free(self, slot: _Slot, holder: str) -> None:
        """Free a slot, unless it expired and another call took it; a slot that stays expires."""
        try:
            with table_errors("free a slot of a waiting call"):
                self.table.write(delete(slot.key).only_if("holder = :holder", holder=holder))
        except TaskStoreError as error:
            self.warn(f"slot {slot.number} of {slot.pool} stays taken for up to {LEASE:g} s: {error}")
