"""The cost of a million hops by AWS's list prices: `python -m bench.hop_cost`. It calls nothing.

The counts are those of `tests/unit/asya/light/lambdas/test_sidecar_counts.py`. The durations are assumptions about AWS; the
table shows each part, so other durations are easy to put in.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

HOPS = 1_000_000
MEMORY_GB = 0.5
# Dollars, us-east-1, November 2026.
LAMBDA_INVOCATION = 0.20 / 1e6
LAMBDA_GB_SECOND = 0.0000133334  # ARM
SQS_REQUEST = 0.40 / 1e6  # each begun 64 KiB
WRITE_UNIT = 0.625 / 1e6
READ_UNIT = 0.125 / 1e6
GOAL = 1.40
GOAL_WITHOUT_REPORTS = 0.35


@dataclass(frozen=True)
class Load:
    """How envelopes come.

    Attributes:
        batch: envelopes in a batch of the actor.
        report_batch: messages of reports in a batch of their consumer.
        report_bytes: bytes of one message of reports.
        sidecar_seconds, consumer_seconds: duration of an invocation of the actor's function, and of the consumer of reports.
    """

    name: str
    batch: int
    report_batch: int
    report_bytes: int
    sidecar_seconds: float
    consumer_seconds: float


FULL = Load("full batches of ten", 10, 10, 7_500, 0.080, 0.150)
ALONE = Load("one envelope in a batch", 1, 10, 1_000, 0.050, 0.060)
ALL_ALONE = Load("one envelope, one message of reports", 1, 1, 1_000, 0.050, 0.030)


def parts(load: Load) -> dict[str, float]:
    """The dollars of a million hops, by part. Records, sink and deployment are not of hops."""
    batches = HOPS / load.batch
    consumed = batches / load.report_batch
    polled_chunks = -(-load.report_batch * load.report_bytes // 65_536)
    return {
        "actor: invocations": batches * LAMBDA_INVOCATION,
        "actor: duration": batches * load.sidecar_seconds * MEMORY_GB * LAMBDA_GB_SECOND,
        "actor: receive, send, delete": 3 * batches * SQS_REQUEST,
        "reports: send": batches * SQS_REQUEST,
        "reports: receive, delete": consumed * (polled_chunks + 1) * SQS_REQUEST,
        "reports: consumer's invocations": consumed * LAMBDA_INVOCATION,
        "reports: consumer's duration": consumed * load.consumer_seconds * MEMORY_GB * LAMBDA_GB_SECOND,
        "reports: one item for each hop": HOPS * WRITE_UNIT,
        # Eventually consistent, if the process has not seen the task.
        "reports: records read": HOPS * 0.5 * READ_UNIT,
        "pre-flight: records read": HOPS * READ_UNIT,
    }


def total(load: Load, *, reports: bool = True) -> float:
    """The dollars of a million hops."""
    return sum(dollars for name, dollars in parts(load).items() if reports or name.startswith("actor"))


def main() -> None:
    """Print the parts and the sums."""
    table = Table(title="Dollars for a million hops", title_justify="left", box=None, pad_edge=False)
    loads = (FULL, ALONE, ALL_ALONE)
    for column in ("", *(load.name for load in loads)):
        table.add_column(column, justify="left" if not column else "right")
    for name in parts(FULL):
        table.add_row(name, *(f"{parts(load)[name]:.3f}" for load in loads))
    table.add_row("sum", *(f"{total(load):.2f}" for load in loads))
    table.add_row("sum without reports", *(f"{total(load, reports=False):.2f}" for load in loads))
    Console().print(table)


if __name__ == "__main__":
    main()
