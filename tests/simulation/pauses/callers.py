"""A caller who is notified of pauses and answers: rightly, wrongly, late, twice, never, or by a cancellation."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.cloud import Cloud
from tests.simulation.pauses.actors import BY

# The weight of each way to answer a notice.
WAYS = {"right": 8, "wrong first": 3, "twice": 3, "late": 3, "never": 1, "cancel": 3}
ATTEMPTS = 200
# The share of pauses whose task is canceled while it pauses.
CANCEL_SHARE = 0.1
Response = dict[str, Any]


@dataclass
class Caller:
    """Answers the notices of pauses.

    Attributes:
        ask: calls the API with a method, a path and a body; None if the function crashed.
        tries: notices that the caller has read, by task, generation and position.
    """

    cloud: Cloud
    random: Random
    ask: Callable[[str, str, Any], Response | None]
    tries: set[tuple[str, int, int]] = field(default_factory=set)
    _answers: int = 0

    def notified(self, detail: str) -> None:
        """Answer the notice of a pause; a repeated notice of a pause gets another answer."""
        notice = json.loads(detail)
        task_id = notice["id"]
        self.tries.add((task_id, notice["generation"], notice["position"]))
        way = self.random.choices(tuple(WAYS), tuple(WAYS.values()))[0]
        self._wait(0.0, 5.0)
        match way:
            case "never":
                return
            case "cancel":
                self._cancel(task_id)
                return
            case "wrong first":
                self._answer_wrongly(task_id, notice)
            case "late":
                self._wait(60.0, 4000.0)
        self.answer(task_id, notice["fields"])
        if way == "twice":
            self._wait(0.0, 100.0)
            self.answer(task_id, notice["fields"])

    def stored(self, task_id: str) -> None:
        """Perhaps cancel a task at the moment when it pauses."""
        if self.random.random() < CANCEL_SHARE:
            delay = self.random.uniform(0.0, 0.2)
            self.cloud.simulation.scheduler.start(lambda: self._cancel(task_id), delay)

    def answer(self, task_id: str, fields: list[dict[str, Any]]) -> None:
        """Give an answer that fits, and that no other call gives."""
        self._answers += 1
        answers: dict[str, Any] = {BY: f"answer-{self._answers}"}
        if any(each["name"] == "grade" for each in fields) and self.random.random() < 0.5:
            answers["grade"] = self._answers
        self._resume(task_id, answers)

    def _cancel(self, task_id: str) -> None:
        self._until_answered("DELETE", f"/api/v1/mesh/{task_id}", None)

    def _answer_wrongly(self, task_id: str, notice: dict[str, Any]) -> None:
        """Give an answer that does not fit; without fields any object fits, so then only a list is wrong.

        It may reach a later pause, which it may fit: the registry of pauses judges each answer by the pause that it ended.
        """
        wrong: tuple[Any, ...] = ([1],)
        if notice["fields"]:
            wrong = (*wrong, {}, {BY: 3}, {BY: "me", "other": 1})
        self._resume(task_id, self.random.choice(wrong))

    def _resume(self, task_id: str, answer: Any) -> None:
        pauses = self.cloud.ledger.pauses
        pauses.answer_sent(task_id, answer)
        response = self._until_answered("POST", f"/api/v1/mesh/{task_id}/resume", {"input": answer})
        if response is not None and response["statusCode"] == 202:
            pauses.answer_accepted(task_id)

    def _until_answered(self, method: str, path: str, body: Any) -> Response | None:
        """Repeat a call until it is accepted or refused; the response of an accepted call may be lost."""
        for _ in range(ATTEMPTS):
            response = self.ask(method, path, body)
            if response is not None and response["statusCode"] < 500:
                return response
            self._wait(2.0, 30.0)
        self.cloud.ledger.report_violation(f"{method} {path} was not answered within {ATTEMPTS} attempts")
        return None

    def _wait(self, least: float, most: float) -> None:
        self.cloud.simulation.scheduler.wait(self.random.uniform(least, most))
