"""Counts what a job run did to its envelopes (`protocol §13.operations.runs.word`)."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from asya.function.delivery import Delivery, Diversion
from asya.protocol.job_runs import ResultHead

Outcome = Literal["succeeded", "failed", "retried", "again", "canceled"]


class RunOutcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The envelopes of a run by outcome.

    Attributes:
        succeeded: whose call gave its result.
        failed: whose call failed, or that the run is charged with, and that end or go to another actor.
        retried: the same, but their policy lets them run again.
        again: without a result, to run again without a charge.
        canceled: whose task was canceled meanwhile.
    """

    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    again: int = 0
    canceled: int = 0

    @property
    def total(self) -> int:
        """The number of envelopes."""
        return self.succeeded + self.failed + self.retried + self.again + self.canceled

    def plus(self, outcome: Outcome) -> "RunOutcomes":
        """The counts with one more envelope."""
        return replace(self, **{outcome: getattr(self, outcome) + 1})

    @property
    def word(self) -> str:
        """The run in one word or two: that of all envelopes, else what went wrong with a part of them."""
        found = [name for name in self.__struct_fields__ if getattr(self, name)]
        if len(found) == 1:
            return {"again": "runs again"}.get(found[0], found[0])
        if self.failed or self.retried:
            return "partly failed" if self.failed else "partly retried"
        return "partly canceled" if self.canceled else "partly again"

    @property
    def text(self) -> str:
        """The counts that are not 0: `19 succeeded, 1 failed`."""
        counts = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return ", ".join(f"{count} {name}" for name, count in counts if count)


def outcome_of(head: ResultHead, first: Delivery | None) -> Outcome:
    """The outcome of an envelope with a result.

    Args:
        head: the head of the result.
        first: its first delivery; None if that left before.
    """
    if first is not None and first.kind == "retry":
        return "retried"
    is_refused = first is not None and first.kind == "sump"
    return "succeeded" if head.end == "done" and not is_refused else "failed"


def outcome_of_charge(delivery: Delivery) -> Outcome:
    """The outcome of an envelope that its run is charged with."""
    return "retried" if delivery.kind == "retry" else "failed"


def outcome_of_diversion(diversion: Diversion) -> Outcome:
    """The outcome of an envelope that ended while its run was at work: past its deadline, or canceled."""
    return "failed" if diversion.why == "SlaExpired" else "canceled"
