"""`python -m tests.simulation.named_tests FILE` plants the mistakes that named tests find, and writes the problems as JSON.

A mistake is planted in a fork of this process before pytest imports its tests. So these see the planted names wherever they
import them from, and a fork needs no new interpreter.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import moto
import pytest

from tests.paths import PROJECT
from tests.simulation.mistake import Mistake
from tests.simulation.planted_table import NAMED

WITHOUT = "without a mistake"
"""The key of the problems of tests while nothing is planted."""
_TESTS = PROJECT / "tests"
_PLANTED = _TESTS / "simulation"
# Libraries that most tests need: a fork has them already.
_WARM = (hypothesis, moto)
_IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
_OPTIONS = ("--quiet", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", _IMPORTED)


class _Watch:
    """A plugin of pytest that notes which tests passed, and why the others did not."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.problems: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.excinfo is not None:
            place = Path(call.excinfo.traceback[-1].path)
            # An error of the mesh or of the mistake itself would be seen by any test.
            is_own = isinstance(call.excinfo.value, (AssertionError, pytest.fail.Exception)) or (
                place.is_relative_to(_TESTS) and not place.is_relative_to(_PLANTED)
            )
            self.problems[item.nodeid] = "" if is_own else f"{call.excinfo.exconly()} in {place}"
        elif report.when == "call":
            self.passed.add(item.nodeid)
        return report


def problem_of(mistake: Mistake) -> str:
    """Why a mistake does not count as found by each of its tests; empty if it does."""

    def run() -> str:
        with mistake.plant():
            watch = _run(mistake.tests)
        return "; ".join(_problems(watch, mistake.tests))

    return _in_fork(run)


def problem_without(tests: Sequence[str]) -> str:
    """Which tests fail although no mistake is planted; empty if none does."""

    def run() -> str:
        watch = _run(tests)
        return "; ".join(sorted(watch.problems))

    return _in_fork(run)


def problems_of_all(mistakes: Sequence[Mistake] = NAMED, *, control: bool = True) -> dict[str, str]:
    """The problems by the names of mistakes, from a new process: no test module may be imported before a mistake is planted.

    Args:
        control: whether to run the tests without a mistake too.
    """
    with tempfile.NamedTemporaryFile("r") as file:
        names = [*(mistake.name for mistake in mistakes), *([WITHOUT] if control else [])]
        subprocess.run([sys.executable, "-m", __name__, file.name, *names], cwd=PROJECT, check=True)
        problems: dict[str, str] = json.load(file)
    return problems


def _problems(watch: _Watch, tests: Sequence[str]) -> Iterator[str]:
    for test in tests:
        failed = [problem for nodeid, problem in watch.problems.items() if _is_of(nodeid, test)]
        if not failed:
            yield f"{test} passes" if any(_is_of(nodeid, test) for nodeid in watch.passed) else f"{test} does not exist"
        elif all(failed):
            yield f"{test} fails by an error outside of the tests: {failed[0]}"


def _is_of(nodeid: str, test: str) -> bool:
    """Whether a test is the named one, or has one of its parameters."""
    return nodeid == test or nodeid.startswith(f"{test}[")


def _run(tests: Sequence[str]) -> _Watch:
    watch = _Watch()
    with _silent():
        pytest.main([*_OPTIONS, f"--rootdir={PROJECT}", *tests], plugins=[watch])
    return watch


@contextmanager
def _silent() -> Iterator[None]:
    """Write the output of tests that fail as they should nowhere."""
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        yield


def _in_fork(job: Callable[[], str]) -> str:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(job()))
    child.start()
    sender.close()
    try:
        answer: str = receiver.recv()
    except EOFError:
        answer = "the process ended without an answer"
    child.join()
    return answer


def main(path: Path, names: Sequence[str]) -> None:
    """Write the problems of the mistakes with these names, and of `WITHOUT` if it is one of them.

    The tests have the size of `make test`, which is where they must find a mistake.
    """
    os.environ.pop("ASYA_FULL_SIZE", None)
    mistakes = [mistake for mistake in NAMED if mistake.name in names]
    problems = {}
    for mistake in mistakes:
        began = time.monotonic()
        problems[mistake.name] = problem_of(mistake)
        result = problems[mistake.name] or f"found by {', '.join(mistake.tests)}"
        print(f"{mistake.name}: {result}, {time.monotonic() - began:.1f} s", flush=True)
    if WITHOUT in names:
        problems[WITHOUT] = problem_without(sorted({test for mistake in mistakes for test in mistake.tests}))
    path.write_text(json.dumps(problems), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
