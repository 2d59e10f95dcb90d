"""Runs simulated schedules: `--schedules 2000` for many seeds, `--seed 1234` for one seed with its log."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.simulation.faults import KINDS
from tests.simulation.inputs.features import read_features
from tests.simulation.mistake import Mistake
from tests.simulation.named_tests import problems_of_all
from tests.simulation.planted_table import HEAVY, LIGHT, NAMED
from tests.simulation.schedule import Outcome, find_seed, run

SEEDS_PER_CHUNK = 20


@dataclass(frozen=True)
class ScheduleSummary:
    """The result of a schedule, in a form that crosses a process boundary.

    Attributes:
        profile: the kind of faults.
        faults: the number of injected faults, by name.
        problem: the violations and the command that repeats them; empty without violations.
    """

    profile: str
    faults: Mapping[str, int]
    problem: str = ""


def main() -> int:
    """Run the command line; the exit code is 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=200, help="number of schedules (default 200)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--seed", type=int, help="run only this seed and print its log")
    parser.add_argument("--faults", choices=sorted(KINDS), help="use only this kind of faults")
    parser.add_argument("--about", default="", help="print only the log lines that contain this text, such as an id")
    parser.add_argument("--keep-going", action="store_true", help="continue after the first violation")
    parser.add_argument("--processes", type=int, default=1, help="number of processes (default 1)")
    parser.add_argument("--heavy", action="store_true", help="simulate meshes with heavy actors")
    parser.add_argument(
        "--features",
        type=read_features,
        help="these features only, such as pauses,ends; or all, or none (default: drawn)",
    )
    parser.add_argument("--mistake", default="", help="plant only the mistakes whose names contain this text")
    parser.add_argument("--planted", action="store_true", help="plant each mistake and print the seed that finds it")
    options = parser.parse_args()
    run_one = partial(run, kind=options.faults, is_heavy=options.heavy, features=options.features)
    if options.seed is not None:
        return _replay(partial(run_one, options.seed, to_the_end=True), options.about)
    if options.planted:
        return _find_planted(HEAVY if options.heavy else LIGHT, options)
    seeds = range(options.first, options.first + options.schedules)
    summaries = _run_all(seeds, run_one, options.processes)
    return _report(summaries, keep_going=options.keep_going)


def _replay(schedule: Callable[[], Outcome], about: str) -> int:
    outcome = schedule()
    for line in outcome.cloud.simulation.log.about(about):
        print(line)
    print(outcome)
    return 1 if outcome.violations else 0


def _find_planted(mistakes: Sequence[Mistake], options: argparse.Namespace) -> int:
    """Print the seed or the test that finds each mistake; the exit code is 1 if one is missed."""
    missed = 0
    seeds = range(options.first, options.first + options.schedules)
    for mistake in [each for each in mistakes if options.mistake in each.name]:
        began = time.monotonic()
        seed = find_seed(mistake, is_heavy=options.heavy, seeds=seeds)
        missed += seed is None
        result = "NOT FOUND" if seed is None else f"found by seed {seed}"
        print(f"{mistake.name}: {result}, {time.monotonic() - began:.1f} s", flush=True)
    missed += _find_named(options.mistake)
    return 1 if missed else 0


def _find_named(text: str) -> int:
    """Run the tests that find mistakes, and return the number of those that do not."""
    named = [mistake for mistake in NAMED if text in mistake.name]
    return sum(bool(problem) for problem in problems_of_all(named).values()) if named else 0


def _run_all(seeds: range, run_one: Callable[[int], Outcome], processes: int) -> Iterator[ScheduleSummary]:
    if processes == 1:
        yield from (_summarize(run_one, seed) for seed in seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(partial(_summarize, run_one), seeds, chunksize=SEEDS_PER_CHUNK)


def _summarize(run_one: Callable[[int], Outcome], seed: int) -> ScheduleSummary:
    outcome = run_one(seed)
    return ScheduleSummary(
        outcome.profile.name, outcome.cloud.simulation.faults.drawn, str(outcome) if outcome.violations else ""
    )


def _report(summaries: Iterator[ScheduleSummary], *, keep_going: bool) -> int:
    began = time.monotonic()
    profiles: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    failed = 0
    for done, summary in enumerate(summaries, start=1):
        profiles[summary.profile] += 1
        faults.update(summary.faults)
        if summary.problem:
            failed += 1
            print(summary.problem, flush=True)
            if not keep_going:
                break
        if done % 100 == 0:
            print(f"{done} schedules, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    counts = ", ".join(f"{count} {name}" for name, count in profiles.most_common())
    print(f"{sum(profiles.values())} schedules in {time.monotonic() - began:.0f} s ({counts})")
    print("faults: " + (", ".join(f"{count} {name.lower()}" for name, count in faults.most_common()) or "none"))
    print(f"{failed} schedules with violations" if failed else "no violations")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
