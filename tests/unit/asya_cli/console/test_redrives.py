"""Redrives for the page: each queue is read once, and each task has an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from asya_cli.console import redrives
from asya_cli.console.redrives import RedrivenTask, RedriveOutcome, RedriveRequest, Redrives
from asya_cli.errors import CommandError


class Letters:
    """Dead letters by actor; a redrive of `refused` is refused, and the queue of `closed` cannot be read."""

    def __init__(self, ids: dict[str, list[str]]) -> None:
        self.ids = ids
        self.scans: list[str] = []
        self.redriven: list[tuple[str, bool]] = []

    @contextmanager
    def scan(self, actor: str, _selection: object) -> Iterator[Iterator[Any]]:
        self.scans.append(actor)
        if actor == "closed":
            raise CommandError("cannot read the dead letters of closed", "Ask for sqs:ReceiveMessage.")
        yield iter([SimpleNamespace(id=each) for each in self.ids.get(actor, [])])

    def redrive(self, letter: Any, *, force: bool) -> Any:
        self.redriven.append((letter.id, force))
        problem = "it succeeded" if letter.id == "refused" else ""
        return SimpleNamespace(generation=None if problem else 2, problem=problem)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Letters:
    letters = Letters({"bill": ["other", "a", "refused", "b", "late"], "ship": ["c"]})
    monkeypatch.setattr(redrives, "DeadLetters", lambda _mesh: letters)
    return letters


def redrive(*tasks: tuple[str, str], force: bool = False) -> list[RedriveOutcome]:
    mesh: Any = None
    named = tuple(RedrivenTask(id=task_id, actor=actor) for task_id, actor in tasks)
    return Redrives(mesh)(RedriveRequest(tasks=named, force=force)).items


def test_only_the_named_tasks_are_sent_again(letters: Letters) -> None:
    outcomes = redrive(("b", "bill"), ("c", "ship"), ("a", "bill"), force=True)
    assert letters.redriven == [("a", True), ("b", True), ("c", True)]
    assert letters.scans == ["bill", "ship"]
    assert outcomes == [RedriveOutcome(id=each, generation=2) for each in ("a", "b", "c")]


def test_a_refused_one_does_not_stop_the_others(letters: Letters) -> None:
    outcomes = {each.id: each for each in redrive(("refused", "bill"), ("b", "bill"))}
    assert outcomes["refused"].problem == "it succeeded"
    assert outcomes["b"].generation == 2


def test_a_task_without_a_dead_letter_says_so(letters: Letters) -> None:
    [outcome] = redrive(("lost", "bill"))
    assert outcome.problem == "there is no dead letter of this task in the queue of bill"
    assert letters.redriven == []


def test_a_queue_that_cannot_be_read_does_not_stop_the_others(letters: Letters) -> None:
    outcomes = {each.id: each for each in redrive(("x", "closed"), ("c", "ship"))}
    assert outcomes["x"].problem == "cannot read the dead letters of closed Ask for sqs:ReceiveMessage."
    assert outcomes["c"].generation == 2
