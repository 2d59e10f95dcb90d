"""`python -m tests.chaos [--envelopes N] [--seed N] [--outage SECONDS] [--off SECONDS] [--keep]`, or `make chaos`.

Exits with 1 if anything is violated. The report is `.build/chaos/report.html`.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from functools import partial
from pathlib import Path

from asya_local.errors import LocalCloudError
from tests.chaos.chaos_run import ChaosRun
from tests.chaos.page import Run, render
from tests.chaos.schedule import Size
from tests.paths import PROJECT

FOLDER = PROJECT / ".build" / "chaos"
_PRINTED = 20


def main() -> None:
    """Run, write the report, and print the violations."""
    options = _options()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    run = ChaosRun(seed, Size.of(options.envelopes, options.outage, options.off), options.folder, _say)
    _say(f"seed {seed}: {options.envelopes} envelopes, {run.size.load_seconds:.0f} s with faults")
    try:
        result = run.execute(partial(_show, options))
    except LocalCloudError as error:
        sys.exit(f"{error}\n{error.detail}".strip())
    sys.exit(1 if result.violations else 0)


def _show(options: argparse.Namespace, result: Run) -> None:
    """Write the report and print the violations; with `--keep`, wait."""
    report = options.folder / "report.html"
    report.write_text(render(result), encoding="utf-8")
    for violation in result.violations[:_PRINTED]:
        _say(str(violation))
    if len(result.violations) > _PRINTED:
        _say(f"and {len(result.violations) - _PRINTED} more violations")
    for each in result.diagnoses:
        _say(f"\n$ {each.command}\n{each.output}")
    _say(f"\n{result.verdict}\nreport: {report}\nagain: {result.command}")
    if options.keep:
        with contextlib.suppress(EOFError):  # without a terminal nobody can press Enter
            input("The cloud is up, without faults. Press Enter to end it.\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--envelopes", type=int, default=2000, help="how many are started")
    parser.add_argument("--seed", type=int, help="repeats a run; a random one by default")
    parser.add_argument("--outage", type=float, help="seconds without the gateway: 180, or 30 below 1,000 envelopes")
    parser.add_argument(
        "--off", type=float, default=0.0, help="seconds for which S3, DynamoDB and SQS are off in turns"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="all files of the run")
    parser.add_argument("--keep", action="store_true", help="end the cloud only when Enter is pressed")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
