"""The items of long polls in the tasks table (`protocol §13.waits`).

`asya.gateway.long_polls` states what they mean. Items: `pk` = name of the pool, `sk` = `permit#{number:04d}`, with the call that
holds the permit as `holder`.
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
from asya.gateway.long_polls import LEASE, PermitPool, permit_pools
from asya.protocol.mesh_table import Gateway
from asya.tasks.aws.task_store import TaskStoreError, table_errors

_PERMIT = "permit#"
# Writes after which a call that lost each of them to another call is refused.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class _Permit:
    pool: str
    number: int

    @property
    def key(self) -> Key:
        return Key(self.pool, f"{_PERMIT}{self.number:04d}")


@dataclass(frozen=True, slots=True)
class LongPollPermits:
    """The permits of a mesh's long polls.

    Attributes:
        table: the tasks table.
        warn: logs a permit that could not be freed.
    """

    table: Table
    limits: Gateway
    environment: Environment
    warn: Callable[[str], None]

    @contextmanager
    def hold(self, principal: str, now: datetime) -> Iterator[None]:
        """Hold a permit of the caller and one of the mesh while a call waits.

        Raises:
            ApiError: 429 if all permits of the caller or of the mesh are taken.
            TaskStoreError: the table is unavailable.
        """
        holder = self.environment.new_span()
        held: list[_Permit] = []
        try:
            for pool in permit_pools(principal, self.limits):
                permit = self._take(pool, holder, now)
                if permit is None:
                    raise pool.refusal()
                held.append(permit)
            yield
        finally:
            for permit in reversed(held):
                self._free(permit, holder)

    def _take(self, pool: PermitPool, holder: str, now: datetime) -> _Permit | None:
        """Take a permit; None if all are taken, or if other calls won each write."""
        guess = _Permit(pool.name, next(pool.free((), self.environment.random())))
        if self._put(guess, holder, now):
            return guess
        free = pool.free(self._taken(pool, now), self.environment.random())
        permits = (_Permit(pool.name, number) for number in islice(free, _TRIES))
        return next((permit for permit in permits if self._put(permit, holder, now)), None)

    def _put(self, permit: _Permit, holder: str, now: datetime) -> bool:
        """Write a permit that is free, expired, or this holder's own after a lost answer."""
        expires_at = math.ceil(now.timestamp() + LEASE)
        change = put(permit.key, {"holder": holder, "expires_at": expires_at}).only_if(
            "attribute_not_exists(pk) OR expires_at <= :now OR holder = :holder",
            now=int(now.timestamp()),
            holder=holder,
        )
        with table_errors("take a permit of a long poll"):
            return bool(self.table.write(change))

    def _taken(self, pool: PermitPool, now: datetime) -> set[int]:
        """The numbers of the taken permits; a pool has at most 1,000 small items, which are one page."""
        with table_errors("read the permits of long polls"):
            # A task may have the name of the pool as its id.
            items = self.table.page(in_partition(pool.name, _PERMIT)).items
        return {
            int(item.key.sk.removeprefix(_PERMIT))
            for item in items
            if item.integer("expires_at") > int(now.timestamp())
        }

    def _free(self, permit: _Permit, holder: str) -> None:
        """Free a permit, unless it expired and another call took it; a permit that stays expires."""
        try:
            with table_errors("free a permit of a long poll"):
                self.table.write(delete(permit.key).only_if("holder = :holder", holder=holder))
        except TaskStoreError as error:
            self.warn(f"permit {permit.number} of {permit.pool} stays taken for up to {LEASE:g} s: {error}")
