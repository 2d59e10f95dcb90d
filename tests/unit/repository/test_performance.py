"""The page about performance: its costs are those of the script, and within the goal."""

import re

import pytest

from bench.hop_cost import ALONE, FULL, GOAL, GOAL_WITHOUT_REPORTS, Load, parts, total
from tests.paths import PROJECT

PAGE = PROJECT / "docs" / "explanation" / "performance.md"
ROW = re.compile(r"^\|[^|]*\| (\d\.\d{3}) \| (\d\.\d{3}) \|$", re.MULTILINE)


def test_a_million_hops_in_full_batches_cost_less_than_the_goal() -> None:
    assert total(FULL) <= GOAL
    assert total(FULL, reports=False) <= GOAL_WITHOUT_REPORTS


@pytest.mark.parametrize(("load", "column"), [(FULL, 0), (ALONE, 1)], ids=lambda value: getattr(value, "name", ""))
def test_the_page_shows_the_arithmetic(load: Load, column: int) -> None:
    section = PAGE.read_text().split("## The cost of a million hops", 1)[1]
    shown = [float(row[column]) for row in ROW.findall(section)]
    assert shown == [pytest.approx(dollars, abs=0.00051) for dollars in parts(load).values()]
    sums = re.search(r"\*\*sum\*\* \| \*\*([\d.]+)\*\* \| \*\*([\d.]+)\*\*", section)
    assert sums is not None
    assert float(sums[column + 1]) == pytest.approx(total(load), abs=0.0051)
