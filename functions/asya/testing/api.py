"""The user of a test calls the gateway."""

import json
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from asya.client.calls import to
from asya.tasks.http_calls import TASKS
from asya.tasks.listing import TaskList
from asya.tasks.view import TaskView
from asya.testing.deployment import TEST_USER, Deployment
from asya.testing.errors import RefusedError
from asya.testing.services.gateway import URL

T = TypeVar("T")

USER_ID = "AIDATEST"


@dataclass(frozen=True)
class Api:
    """The gateway of a mesh, called by the user of the test, who is an operator."""

    cloud: Deployment

    def ask(self, method: str, path: str, answer: type[T] | None, *, body: Any = None, or_none: bool = False) -> Any:
        """See `Mesh.ask`."""
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        response = self.cloud.request(method, path, content, {}, user_arn=TEST_USER, user_id=USER_ID)
        self.cloud.finish()
        status, text = response["statusCode"], response.get("body") or ""
        if status == 404 and or_none:
            return None
        if status >= 400:
            raise RefusedError(_problem_of(text))
        return msgspec.json.decode(text, type=answer) if answer is not None else None

    def call_back(self, link: str, body: Any) -> None:
        """Follow the link of a pause with an answer, without a signature.

        Raises:
            RefusedError: the gateway refuses the answer.
        """
        content, headers = msgspec.json.encode(body), {"content-type": "application/json"}
        answer = self.cloud.request("POST", link.removeprefix(URL), content, headers, user_arn="", user_id="")
        if answer["statusCode"] >= 400:
            raise RefusedError(_problem_of(answer.get("body") or ""))

    def tasks(self, status: str | None) -> list[TaskView]:
        """The tasks in a status, or all of them, newest first."""
        query, tasks = {"status": status} if status is not None else {}, list[TaskView]()
        while True:
            page = self.ask(*to(TASKS, query), TaskList)
            tasks += page.items
            if page.next_cursor is None:
                return tasks
            query["cursor"] = page.next_cursor


def _problem_of(body: str) -> str:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return body
    return str(error["message"])
