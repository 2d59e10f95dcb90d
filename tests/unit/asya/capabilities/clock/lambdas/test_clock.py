"""protocol §13, clock: the function of the clock, and what one step may not do to the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from asya.capabilities.clock.lambdas.clock import Clock, RunningSteps, StepOverdue, StepsFailedError, time_limit
from asya.capabilities.clock.steps import Step, StepsError
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 11, 28, 12, tzinfo=UTC)
NAMES = ("x-a", "x-b", "x-c", "x-d")


@dataclass
class Telemetry:
    """The telemetry of a step, which keeps what it is told."""

    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    counted: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def log(self) -> Telemetry:
        return self

    def error(self, message: str, **more: Any) -> None:
        self.lines.append((message, more))

    def count(self, name: str, *, by: Any) -> None:
        self.counted.append((name, by))

    def flush(self) -> None:
        """Writes nothing."""


@dataclass
class World:
    """A clock whose steps do what a test says.

    Attributes:
        does: by the name of a step, what it does; others only run.
        ran: the names of the steps in the order in which they began.
        limits: the seconds of each of them.
    """

    file: Path
    monkeypatch: pytest.MonkeyPatch
    does: dict[str, Callable[[], None]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    telemetry: dict[str, Telemetry] = field(default_factory=dict)
    now: datetime = START

    def process(self) -> Clock:
        """Start a new process of the clock."""
        steps = [Step(name, name, 5 if name == "x-c" else 1, 60.0) for name in NAMES]
        clock = Clock(steps, self._services, RunningSteps(self.file), lambda: self.now, self._limit)
        self.monkeypatch.setattr(
            "pkgutil.resolve_name", lambda name: SimpleNamespace(sweep=lambda _: self._sweep(name))
        )
        return clock

    def minute(self, clock: Clock, event: dict[str, Any] | None = None) -> list[str]:
        """Call the clock, and return what ran. A minute later is the next one."""
        self.ran.clear()
        self.limits.clear()
        try:
            clock.run(event or {"source": "aws.events"}, context(250.0))
        finally:
            self.now += timedelta(minutes=1)
        return list(self.ran)

    def told(self) -> dict[str, list[str]]:
        """What each step counted, by its name."""
        return {name: [by[1] for _, by in each.counted] for name, each in self.telemetry.items() if each.counted}

    def _services(self, step: str) -> Any:
        return SimpleNamespace(telemetry=self.telemetry.setdefault(step, Telemetry()))

    def _sweep(self, name: str) -> None:
        self.ran.append(name)
        self.does.get(name, lambda: None)()

    def _limit(self, seconds: float) -> Any:
        self.limits.append(seconds)
        return time_limit(seconds)


def context(seconds: float) -> Any:
    return SimpleNamespace(get_remaining_time_in_millis=lambda: int(seconds * 1000))


def raising(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


class Killed(BaseException):
    """Stands for the end of a process: nothing after it runs."""


def killed(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Call the clock, whose process a step ends, and return what ran."""
    with monkeypatch.context() as patch:
        patch.setattr(RunningSteps, "end", _end_unless_killed)
        with pytest.raises(Killed):
            world.minute(clock)
    return list(world.ran)


def _end_unless_killed(self: RunningSteps, name: str) -> None:
    if not isinstance(sys.exc_info()[1], Killed):
        self._write([each for each in self.read() if each != name])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path / "steps.json", monkeypatch)


@pytest.mark.rule("11.clock")
def test_the_steps_run_in_the_declared_order_each_when_it_is_due(world: World) -> None:
    clock = world.process()
    assert [world.minute(clock) for _ in range(6)] == [[*NAMES], *[["x-a", "x-b", "x-d"]] * 4, [*NAMES]]
    assert world.told() == {}, "metrics tell only of what happened"


@pytest.mark.rule("11.clock.isolated", "15.StepsFailed")
@pytest.mark.parametrize("error", [ValueError("broken"), MemoryError(), SystemExit(1), StepOverdue("too long")])
def test_a_step_that_fails_stops_no_other(world: World, error: BaseException) -> None:
    world.does["x-b"] = raising(error)
    clock = world.process()
    with pytest.raises(StepsFailedError, match="failed: x-b"):
        world.minute(clock)
    assert world.ran == [*NAMES]
    assert world.told() == {"x-b": ["overdue" if isinstance(error, StepOverdue) else "error"]}
    del world.does["x-b"]
    assert world.minute(clock) == ["x-a", "x-b", "x-d"], "it keeps its place: the process went on"


def test_a_step_that_cannot_be_imported_stops_no_other(world: World) -> None:
    clock, resolve = world.process(), lambda name: {}[name]
    world.monkeypatch.setattr("pkgutil.resolve_name", resolve)
    with pytest.raises(StepsFailedError, match="failed: x-a, x-b, x-c, x-d"):
        world.minute(clock)


@pytest.mark.rule("11.clock.deadline")
def test_a_step_gets_its_part_of_the_time(world: World) -> None:
    world.minute(world.process())
    # All have as long, and the context of this test always has 250 s left.
    assert world.limits == pytest.approx([245 / 4, 245 / 3, 245 / 2, 245])


@pytest.mark.rule("11.clock.deadline")
def test_a_step_that_takes_too_long_is_stopped(world: World) -> None:
    """Whatever it catches: an SDK takes each exception for one of the network."""

    def hang() -> None:
        while True:
            with suppress(Exception):  # as an SDK may
                threading.Event().wait(60)

    world.does["x-b"] = hang
    world.monkeypatch.setattr("asya.capabilities.clock.lambdas.clock.share", lambda *_: 0.01)
    with pytest.raises(StepsFailedError, match="failed: x-b"):
        world.minute(world.process())
    assert world.ran == [*NAMES]
    assert world.told() == {"x-b": ["overdue"]}


def test_a_thread_has_no_limit() -> None:
    done: list[bool] = []

    def body() -> None:
        with time_limit(0.001):
            done.append(True)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert done == [True]


@pytest.mark.rule("11.clock.killed")
def test_a_step_that_ends_the_process_stops_no_other_of_the_next_minute(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.does["x-b"] = raising(Killed())
    assert killed(world, world.process(), monkeypatch) == ["x-a", "x-b"]
    for _ in range(3):
        assert killed(world, world.process(), monkeypatch) == ["x-a", "x-c", "x-d", "x-b"]
    assert world.told() == {"x-b": ["died"] * 3}
    del world.does["x-b"]
    clock = world.process()
    assert world.minute(clock) == ["x-a", "x-c", "x-d", "x-b"]
    assert world.minute(clock) == ["x-a", "x-b", "x-d"], "it has its place again"


@pytest.mark.rule("11.clock.killed")
def test_two_steps_that_end_the_process_take_turns_and_stop_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.does |= {name: raising(Killed()) for name in ("x-a", "x-c")}
    ran = [killed(world, world.process(), monkeypatch) for _ in range(5)]
    assert ran == [["x-a"], ["x-b", "x-c"], *[["x-b", "x-d", first] for first in ("x-a", "x-c", "x-a")]]


def test_an_event_names_steps(world: World) -> None:
    clock = world.process()
    assert world.minute(clock, {"steps": ["x-c"]}) == ["x-c"]
    assert world.minute(clock, {"steps": ["x-c"]}) == ["x-c"], "due or not"
    with pytest.raises(StepsError, match="no step 'x-other'"):
        world.minute(clock, {"steps": ["x-other"]})


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", None])
def test_without_a_readable_note_the_order_is_the_declared_one(world: World, content: bytes | None) -> None:
    if content is None:
        world.file.mkdir()
    else:
        world.file.write_bytes(content)
    assert world.minute(world.process()) == [*NAMES]


_KILLING = """
import json, os, sys, types
from pathlib import Path
from types import SimpleNamespace
from datetime import UTC, datetime
from asya.capabilities.clock.lambdas.clock import Clock, RunningSteps
from asya.capabilities.clock.steps import Step

def step(name):
    def sweep(_):
        print(name, flush=True)
        if name == "x-b":
            os._exit(137)
    return SimpleNamespace(sweep=sweep)

steps = types.ModuleType("steps")
steps.__dict__.update({name: step(f"x-{name}") for name in "abc"})
sys.modules["steps"] = steps
log = SimpleNamespace(error=lambda *_, **more: print(json.dumps(more["reason"]), flush=True))
telemetry = SimpleNamespace(log=log, count=lambda *_, **__: None, flush=lambda: None)
clock = Clock([Step(f"x-{name}", f"steps.{name}", 1, 60.0) for name in "abc"], lambda _: SimpleNamespace(telemetry=telemetry),
              RunningSteps(Path(sys.argv[1])), lambda: datetime.now(UTC))
clock.run({}, SimpleNamespace(get_remaining_time_in_millis=lambda: 250_000))
"""


@pytest.mark.rule("11.clock.killed")
@pytest.mark.slow
def test_the_note_outlives_a_process(tmp_path: Path) -> None:
    def process() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", _KILLING, str(tmp_path / "steps.json")],
            capture_output=True,
            text=True,
            check=False,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT / "functions")},
        )
        assert done.returncode == 137, done.stderr
        return done.stdout.split()

    assert process() == ["x-a", "x-b"]
    assert process() == [json.dumps("died"), "x-a", "x-c", "x-b"]
