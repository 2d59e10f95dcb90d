"""`python -m tests.calendar [MOMENT[@ZONE]...]`: runs tests on other days and in other zones.

Without arguments all tests run once, and it is noted which of them ask for the time. Those in memory run at each other moment, and
the tests to which the zone may matter at each moment in each zone. Exits with 1 if a test fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tests.calendar.moments import MOMENTS, ZONES
from tests.calendar.plan import EVERYTHING, FIRST_CELL, LEFT_OUT, MOMENT_CELLS, SAMPLE, SUITES, asking, zoned
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FOLDER = PROJECT / ".build" / "calendar"
STARTUP = Path(__file__).parent / "startup"
OFFSET = "ASYA_TEST_CLOCK_OFFSET"
READERS = "ASYA_TEST_CLOCK_READERS"
NOTES = FOLDER / "asking.txt"
_FAILED = re.compile(r"^(?:FAILED|ERROR) .*|^ +(?:FAIL|×) .*", re.MULTILINE)
_SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|error|skipped|deselected).*?)(?: =+)?$", re.MULTILINE)
_PAGE_SUMMARY = re.compile(r"^ *Tests +(.*)$", re.MULTILINE)
_COLORS = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Cell:
    """A moment in a zone."""

    moment: str
    zone: str

    def __str__(self) -> str:
        return f"{self.moment}@{self.zone}"


def environment_at(moment: datetime, zone: str, now: datetime) -> dict[str, str]:
    """Return the variables that let the processes of a test run start at a moment, in a zone.

    Args:
        moment: The time that their clocks show.
        now: The time of this machine.
    """
    path = os.pathsep.join(filter(None, (str(STARTUP), os.environ.get("PYTHONPATH"))))
    # pytest would rewrite the plugin of time-machine, which nobody uses; it is imported before.
    options = '-W "ignore:Module already imported:pytest.PytestAssertRewriteWarning"'
    return {
        "TZ": zone,
        OFFSET: f"{(moment - now).total_seconds():.3f}",
        "PYTHONPATH": path,
        "PYTEST_ADDOPTS": options,
    }


def main() -> None:
    """Run what is asked for."""
    options = _options()
    if options.list:
        for cell in _all_cells():
            print(f"{cell!s:<32} {_at(cell, datetime.now(UTC)).astimezone(ZoneInfo(cell.zone)):%a %Y-%m-%d %H:%M %z}")
        for test, reason in LEFT_OUT.items():
            print(f"left out: {test}: {reason}")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = [_run(cell, tests, options.processes) for cell, tests in _chosen(options)]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if all(results) else 1)


def _chosen(options: argparse.Namespace) -> Iterable[tuple[Cell, Sequence[str]]]:
    """Yield the cells with their tests. What runs in later ones depends on the notes of the first."""
    first = Cell(*FIRST_CELL)
    if options.sample:
        yield first, options.tests or SAMPLE
    elif options.cells:
        for cell in options.cells:
            yield cell, options.tests or (zoned() if options.zoned else SUITES)
    else:
        is_narrow = options.zoned or options.tests
        for cell in sorted(_all_cells(), key=lambda cell: cell != first):
            if is_narrow or (cell != first and (cell.moment, cell.zone) not in MOMENT_CELLS):
                yield cell, options.tests or zoned()
            else:
                yield cell, EVERYTHING if cell == first else asking(NOTES)


def _run(cell: Cell, tests: Sequence[str], processes: int) -> bool:
    """Run tests in a cell, print how it went, and return whether it went well."""
    now, began = datetime.now(UTC), time.monotonic()
    moment = _at(cell, now)
    # A test of the suite may have started this script; the tests of another day know nothing of it.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    # Node comes with the Python packages: the machine's own may be too old for the page.
    own["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), own.get("PATH", "")))
    environment = own | environment_at(moment, cell.zone, now)
    if tests == EVERYTHING:
        NOTES.unlink(missing_ok=True)
        environment[READERS] = str(NOTES)
    left_out = [f"--deselect={test}" for test in LEFT_OUT]
    runs: list[tuple[list[str], re.Pattern[str]]] = [
        (
            [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--numprocesses={processes}", *left_out, *tests],
            _SUMMARY,
        ),
        (["npm", "run", "--prefix", "console", "--silent", "test"], _PAGE_SUMMARY),
    ]
    print(f"{cell}: from {moment.astimezone(ZoneInfo(cell.zone)):%a %Y-%m-%d %H:%M %z}", flush=True)
    is_good = True
    for command, summary in runs:
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        output = _COLORS.sub("", done.stdout + done.stderr)
        name = f"{cell.moment} {cell.zone.replace('/', '-')} {'page' if summary is _PAGE_SUMMARY else 'tests'}.log"
        (FOLDER / name).write_text(output)
        is_good &= done.returncode == 0
        for line in _FAILED.findall(output) if done.returncode else ():
            print(f"  {line.strip()}")
        counts = summary.findall(output)
        print(f"  {'✔' if done.returncode == 0 else '✘'} {counts[-1] if counts else FOLDER / name}", flush=True)
    print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return is_good


def _at(cell: Cell, now: datetime) -> datetime:
    return MOMENTS[cell.moment].at(now, ZoneInfo(cell.zone))


def _all_cells() -> list[Cell]:
    return [Cell(moment, zone) for moment, zone in product(MOMENTS, ZONES)]


def _cell(text: str) -> list[Cell]:
    """Read `+400d@Asia/Kolkata`, or `+400d` for all zones."""
    moment, _, zone = text.partition("@")
    if moment not in MOMENTS or (zone and zone not in ZONES):
        raise argparse.ArgumentTypeError(f"moments are {', '.join(MOMENTS)}; zones are {', '.join(ZONES)}")
    return [Cell(moment, each) for each in ((zone,) if zone else ZONES)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.calendar", description=__doc__)
    parser.add_argument("cells", nargs="*", type=_cell, metavar="MOMENT[@ZONE]", help="such as +400d@Asia/Kolkata")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="only these tests")
    parser.add_argument("--zoned", action="store_true", help="only tests to which the zone may matter")
    parser.add_argument("--sample", action="store_true", help="what `make test` runs")
    parser.add_argument("--processes", type=int, default=2, help="how many run tests")
    parser.add_argument("--list", action="store_true", help="print the moments, and what is left out, and run nothing")
    options = parser.parse_args()
    options.cells = [cell for cells in options.cells for cell in cells]
    return options


if __name__ == "__main__":
    main()
