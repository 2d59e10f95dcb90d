"""`make bench`: the benchmarks without a local cloud, with their goals. `python -m bench.light_path` has the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bench import cold_start, core, parallel_jobs, span_export, spark_overhead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.side_by_side import Measurement


def main() -> None:
    """Run the benchmarks and print the results."""
    _show(f"One hop of {len(core.message())} bytes, µs", core.run(), 1e6, core.GOALS)
    _show("The trace of a hop, ms", span_export.run(), 1e3, {})
    _show("One job run, s", spark_overhead.run_all(), 1.0, {spark_overhead.ACTOR: spark_overhead.GOAL})
    _show(f"One job run of {parallel_jobs.ENVELOPES} envelopes that wait, s", parallel_jobs.run_all(), 1.0, {})
    _show("A fresh process, ms", cold_start.run(), 1e3, {cold_start.SIDECAR: cold_start.GOAL})


def _show(title: str, results: list[tuple[str, Measurement, float]], unit: float, goals: Mapping[str, float]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("", "median", "ratio", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for name, measurement, ratio in results:
        goal = f"≤ {goals[name]:.2f}" if name in goals else ""
        table.add_row(name, f"{measurement.seconds * unit:.1f}", f"{ratio:.3f}", goal)
    Console().print(table)


if __name__ == "__main__":
    main()
