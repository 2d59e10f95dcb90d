"""The page of journeys: a message, the end of a job run and a request pass the modules that it names, and no others."""

import re
import subprocess
import sys

import pytest

from tests.paths import PROJECT

PAGE = PROJECT / "docs" / "explanation" / "journeys.md"
MODULE = re.compile(r"`([a-z0-9_/]+)\.py`")


def documented(heading: str) -> tuple[list[str], list[str]]:
    """The modules of a journey: those it passes, in order, and those that help at one place."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    passed, helping = section.split("More modules help", 1)
    return MODULE.findall(passed), MODULE.findall(helping)


def traced_modules(journey: str) -> set[str]:
    """The modules that run in a journey, from a process of its own."""
    command = [sys.executable, "-m", "tests.journeys", journey]
    output = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert output.returncode == 0, output.stderr
    return set(output.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    ("journey", "heading", "limit"),
    [("message", "An SQS message", 16), ("completion", "The end of a job run", 12), ("request", "A POST", 9)],
)
@pytest.mark.slow
def test_a_journey_passes_the_modules_that_are_documented(journey: str, heading: str, limit: int) -> None:
    """At most `limit` modules, beside those that help at one place."""
    passed, helping = documented(heading)
    assert traced_modules(journey) == {*passed, *helping}
    assert len(passed) <= limit
