"""`make bench`: every benchmark, with its goal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench import core


def main() -> None:
    """Run and print."""
    table = Table(title=f"One hop of {len(core.message())} bytes", title_justify="left", box=None, pad_edge=False)
    for column in ("", "µs", "ratio", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for name, measured, ratio in core.run():
        goal = core.GOALS.get(name)
        table.add_row(name, f"{measured.seconds * 1e6:.1f}", f"{ratio:.2f}", f"≤ {goal:.2f}" if goal else "")
    Console().print(table)


if __name__ == "__main__":
    main()
