"""Bounds the calls that wait for tasks: slots for all callers, and slots of each caller (`protocol §13.waits`).

A call that waits occupies one concurrent execution of the account. It takes a slot of its caller and a slot of the mesh before
it starts its task, and frees both at its end. The slots of a process that dies expire.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import Gateway

# Seconds; longer than any call, because API Gateway and the function time out after 30.
LEASE = 35.0
RETRY_AFTER = 5
"""Seconds after which a refused call should be repeated: waiting calls end at different times, and 25 s at most."""


@dataclass(frozen=True, slots=True)
class SlotPool:
    """Numbered slots.

    Attributes:
        name: the partition key of its items.
        size: the number of slots.
        setting: the key of the mesh file that sets the size.
        waiting: what the calls in the slots are, for the refusal.
    """

    name: str
    size: int
    setting: str
    waiting: str

    def free(self, taken: Collection[int], start: float) -> Iterator[int]:
        """The numbers of the free slots, from a random one on, so that concurrent calls try different ones.

        Args:
            taken: the numbers of the taken slots.
            start: a random number in [0, 1).
        """
        first = int(start * self.size)
        numbers = ((first + offset) % self.size for offset in range(self.size))
        return (number for number in numbers if number not in taken)

    def refusal(self) -> ApiError:
        """The error of a call for which no slot is free."""
        problem = (
            f"{self.size} {self.waiting} already wait for tasks (gateway.{self.setting}); try again in {RETRY_AFTER} s"
        )
        return ApiError(429, "too_many_waits", problem, retry_after=RETRY_AFTER)


def slot_pools(principal: str, limits: Gateway) -> tuple[SlotPool, SlotPool]:
    """The pools from which a waiting call needs a slot each: the caller's first, so a refused caller takes none of all."""
    digest = hashlib.sha256(principal.encode()).hexdigest()
    return (
        SlotPool(f"WAIT#{digest}", limits.waits_per_caller, "waits_per_caller", "calls of this caller"),
        SlotPool("WAIT", limits.waits, "waits", "calls"),
    )
