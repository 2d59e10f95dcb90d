"""`python -m tests.simulation.planted_table` writes docs/reference/planted-mistakes.md: the table of planted mistakes."""

from collections.abc import Iterable
from pathlib import Path

from tests.paths import PROJECT
from tests.simulation.ends import planted as end_planted
from tests.simulation.heavy import planted as heavy_planted
from tests.simulation.mistake import Mistake
from tests.simulation.planted import (
    callbacks,
    delivery,
    ends,
    features,
    fences,
    keys,
    lanes,
    outages,
    resolutions,
    routing,
    schedules,
    sets,
    waits,
    words,
)

PAGE = PROJECT / "docs" / "reference" / "planted-mistakes.md"
_LIGHT = (
    *features.MISTAKES,
    *end_planted.MISTAKES,
    *delivery.MISTAKES,
    *ends.MISTAKES,
    *fences.MISTAKES,
    *keys.MISTAKES,
    *callbacks.MISTAKES,
    *lanes.MISTAKES,
    *schedules.MISTAKES,
    *routing.MISTAKES,
    *sets.MISTAKES,
    *waits.MISTAKES,
    *outages.MISTAKES,
    *resolutions.MISTAKES,
    *words.MISTAKES,
)
LIGHT = tuple(mistake for mistake in _LIGHT if not mistake.tests)
HEAVY = tuple(mistake for mistake in heavy_planted.MISTAKES if not mistake.tests)
NAMED = tuple(mistake for mistake in (*_LIGHT, *heavy_planted.MISTAKES) if mistake.tests)

_HEAD = """# Planted mistakes

`make test` plants each of these mistakes in the mesh. Simulated schedules run until one of them
violates an invariant: the schedule of the named seed, then those of seeds 0 to 99. The same schedule
must pass without the mistake. Other mistakes have a named test, which must fail while they are planted and pass
without. [Testing](../explanation/testing.md#planted-mistakes) explains the
simulation. This page is written by `python -m tests.simulation.planted_table`.
"""


def as_page() -> str:
    """The page with a table for light meshes, one for heavy ones, and one for named tests."""
    return "\n".join(
        [
            _HEAD,
            *_section("Light meshes", LIGHT),
            "",
            *_section("Meshes with heavy actors", HEAVY),
            "",
            *_named_section(),
            "",
        ],
    )


def _section(title: str, mistakes: Iterable[Mistake]) -> list[str]:
    rows = [
        f"| {each.name} | {each.kind or 'any'} | {', '.join(sorted(each.features)) or '–'} | {each.seed} |"
        for each in sorted(mistakes, key=lambda each: each.name)
    ]
    return [f"## {title}", "", "| mistake | faults | features | seed |", "|---|---|---|---|", *rows]


def _named_section() -> list[str]:
    rows = [
        f"| {each.name} | {'<br>'.join(f'`{test}`' for test in each.tests)} |"
        for each in sorted(NAMED, key=lambda each: each.name)
    ]
    return ["## Found by a named test", "", "| mistake | test |", "|---|---|", *rows]


def main(page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(as_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
