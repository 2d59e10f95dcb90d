"""`python -m tests.simulation.planted_table` writes docs/reference/planted-mistakes.md: the table of planted mistakes."""

from collections.abc import Iterable
from pathlib import Path

from tests.paths import PROJECT
from tests.simulation.ends import planted as end_planted
from tests.simulation.heavy import planted as heavy_planted
from tests.simulation.mistake import Mistake
from tests.simulation.planted import delivery, ends, features, routing, sets, waits

PAGE = PROJECT / "docs" / "reference" / "planted-mistakes.md"
LIGHT = (
    *features.MISTAKES,
    *end_planted.MISTAKES,
    *delivery.MISTAKES,
    *ends.MISTAKES,
    *routing.MISTAKES,
    *sets.MISTAKES,
    *waits.MISTAKES,
)
HEAVY = heavy_planted.MISTAKES

_HEAD = """# Planted mistakes

`make test` plants each of these mistakes in the mesh and runs simulated schedules until one of them
violates an invariant: the schedule of the named seed, then those of seeds 0 to 99. The same schedule
must pass without the mistake. [Testing](../explanation/testing.md#planted-mistakes) explains the
simulation. This page is written by `python -m tests.simulation.planted_table`.
"""


def as_page() -> str:
    """The page with one table for light meshes and one for heavy ones."""
    return "\n".join(
        [_HEAD, *_section("Light meshes", LIGHT), "", *_section("Meshes with heavy actors", HEAVY), ""],
    )


def _section(title: str, mistakes: Iterable[Mistake]) -> list[str]:
    rows = [
        f"| {each.name} | {each.kind or 'any'} | {', '.join(sorted(each.features)) or '–'} | {each.seed} |"
        for each in sorted(mistakes, key=lambda each: each.name)
    ]
    return [f"## {title}", "", "| mistake | faults | features | seed |", "|---|---|---|---|", *rows]


def main(page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(as_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
