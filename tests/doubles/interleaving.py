"""Runs programs in every order of their steps: each step is a call of a client, and a program may crash before or after it."""

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any


class Crash(BaseException):
    """Ends a program, as the death of its process does."""


@dataclass
class Program:
    """A program in a thread of its own, which goes on by one step whenever it may.

    Attributes:
        crash: the number of the step at which it crashes, and whether before or after the call; None without a crash.
        steps: the number of steps so far.
        answer: what the program returned; None after a crash.
    """

    body: Callable[[], Any]
    crash: tuple[int, str] | None = None
    steps: int = 0
    answer: Any = None
    error: BaseException | None = None
    has_ended: bool = False
    _may_go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stands: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def start(self) -> None:
        """Run up to the first step."""
        threading.Thread(target=self._run, daemon=True).start()
        self._stands.acquire()

    def go(self) -> None:
        """Make the call of one step, and run up to the next one."""
        self._may_go.release()
        self._stands.acquire()

    def step(self, call: Callable[[], Any]) -> Any:
        """Wait for the turn of this program, then make a call."""
        self._stands.release()
        self._may_go.acquire()
        number, self.steps = self.steps, self.steps + 1
        if self.crash == (number, "before"):
            raise Crash
        answer = call()
        if self.crash == (number, "after"):
            raise Crash
        return answer

    def _run(self) -> None:
        _current.program = self
        try:
            self.answer = self.body()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self.error = error
        self.has_ended = True
        self._stands.release()


class _Current(threading.local):
    program: Program | None = None


_current = _Current()


@dataclass(frozen=True)
class SteppedClient:
    """A client whose calls of some operations are steps of the program that makes them.

    Attributes:
        is_step: whether a call is a step, by action and request.
    """

    client: Any
    is_step: Callable[[str, dict[str, Any]], bool]

    def __getattr__(self, action: str) -> Any:
        real = getattr(self.client, action)
        program = _current.program
        if program is None or not inspect.ismethod(real):
            return real

        def call(*args: Any, **request: Any) -> Any:
            if not self.is_step(action, request):
                return real(*args, **request)
            return program.step(lambda: real(*args, **request))

        return call


def run(programs: Sequence[Program], order: Sequence[int]) -> None:
    """Run programs, one step at a time: those that `order` names first, then each to its end."""
    for program in programs:
        program.start()
    for number in order:
        if not programs[number].has_ended:
            programs[number].go()
    for program in programs:
        while not program.has_ended:
            program.go()
        if program.error is not None:
            raise program.error


def orders(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Each order of the steps of programs with so many steps."""
    if not any(counts):
        yield ()
        return
    for number, count in enumerate(counts):
        if count:
            left = [*counts]
            left[number] -= 1
            for rest in orders(left):
                yield (number, *rest)


def crashes(count: int) -> Iterator[tuple[int, str] | None]:
    """No crash, and one before and one after each step."""
    yield None
    for number in range(count):
        yield number, "before"
        yield number, "after"


def text(order: Sequence[int]) -> str:
    """An order in few characters, for a message."""
    return " ".join(f"{number}x{len(list(group))}" for number, group in groupby(order))
