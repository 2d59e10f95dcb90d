"""Bounds the long polls: permits for all callers, and permits of each caller (`protocol §13.waits`).

A long poll is a call that stays open until its task has ended. It occupies one concurrent execution of the account. It takes a
permit of its caller and a permit of the mesh before it starts its task, and frees both at its end. The permits of a process that
dies expire.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import Gateway

# Seconds; longer than any call, because API Gateway and the function time out after 30.
LEASE = 35.0
RETRY_AFTER = 5
"""Seconds after which a refused call should be repeated: long polls end at different times, and 25 s at most."""


@dataclass(frozen=True, slots=True)
class PermitPool:
    """Numbered permits.

    Attributes:
        name: the partition key of its items.
        size: the number of permits.
        setting: the key of the mesh file that sets the size.
        waiting: what the calls in the permits are, for the refusal.
    """

    name: str
    size: int
    setting: str
    waiting: str

    def free(self, taken: Collection[int], start: float) -> Iterator[int]:
        """The numbers of the free permits, from a random one on, so that concurrent calls try different ones.

        Args:
            taken: the numbers of the taken permits.
            start: a random number in [0, 1).
        """
        first = int(start * self.size)
        numbers = ((first + offset) % self.size for offset in range(self.size))
        return (number for number in numbers if number not in taken)

    def refusal(self) -> ApiError:
        """The error of a call for which no permit is free."""
        problem = (
            f"{self.size} {self.waiting} already wait for tasks (gateway.{self.setting}); try again in {RETRY_AFTER} s"
        )
        return ApiError(429, "too_many_long_polls", problem, retry_after=RETRY_AFTER)


def permit_pools(principal: str, limits: Gateway) -> tuple[PermitPool, PermitPool]:
    """The pools from which a long poll needs a permit each: the caller's first, so a refused caller takes none of all."""
    digest = hashlib.sha256(principal.encode()).hexdigest()
    return (
        PermitPool(f"POLL#{digest}", limits.long_polls_per_caller, "long_polls_per_caller", "calls of this caller"),
        PermitPool("POLL", limits.long_polls, "long_polls", "calls"),
    )
