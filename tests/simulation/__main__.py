"""Runs schedules: `python -m tests.simulation --schedules 2000`, or one of them with its log: `--seed 1234`."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.faults import KINDS
from tests.simulation.schedule import Outcome, run


def main() -> int:
    """Exit code 0 if there was no violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=200, help="how many (200)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="only this one, with its whole log")
    parser.add_argument("--weather", choices=sorted(KINDS), help="of this kind only")
    parser.add_argument("--about", default="", help="of the log only the lines that contain this, an id for example")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first violation")
    options = parser.parse_args()
    if options.seed is not None:
        return _replay(options.seed, options.weather, options.about)
    seeds = range(options.first, options.first + options.schedules)
    return _run_all(seeds, options.weather, keep_going=options.keep_going)


def _replay(seed: int, kind: str | None, about: str) -> int:
    outcome = run(seed, kind, to_the_end=True)
    for line in outcome.cloud.nature.log.about(about):
        print(line)
    print(outcome)
    return 1 if outcome.violations else 0


def _run_all(seeds: range, kind: str | None, *, keep_going: bool) -> int:
    began = time.monotonic()
    weathers: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    failed: list[Outcome] = []
    for done, seed in enumerate(seeds, start=1):
        outcome = run(seed, kind)
        weathers[outcome.weather.name] += 1
        faults.update(outcome.cloud.nature.faults.drawn)
        if outcome.violations:
            failed.append(outcome)
            print(outcome, flush=True)
            if not keep_going:
                break
        if done % 100 == 0:
            print(f"{done} schedules, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    told = ", ".join(f"{count} {name}" for name, count in weathers.most_common())
    print(f"{sum(weathers.values())} schedules in {time.monotonic() - began:.0f} s ({told})")
    print("faults: " + (", ".join(f"{count} {name.lower()}" for name, count in faults.most_common()) or "none"))
    print(f"{len(failed)} of them with violations" if failed else "no violation")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
