"""The network between the real gateway client and the real gateway function; calls may fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3

from tests.simulation.process import Process

HOST = "gateway.simulated"
URL = f"https://{HOST}"


@dataclass(frozen=True)
class Answer:
    """An HTTP response as the client receives it."""

    status: int
    data: bytes


class _AnsweredError(Exception):
    """API Gateway answers a call itself."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class NoAnswerError(urllib3.exceptions.HTTPError):
    """The client receives no response."""


# From an event of API Gateway to the function's response; None if the function crashed.
Handler = Callable[[dict[str, Any]], dict[str, Any] | None]


@dataclass
class Pool:
    """The connection pool of a process's `GatewayClient`."""

    process: Process
    handler: Handler
    user_arn: str
    user_id: str

    def urlopen(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout: urllib3.Timeout | None = None,
        redirect: bool = True,
    ) -> Answer:
        """Send one request."""
        scheduler = self.process.simulation.scheduler
        began = scheduler.seconds
        try:
            answer = self.process.call(
                "gateway",
                f"{method} {urlsplit(url).path}",
                lambda: self._answered(method, url, body, headers or {}),
                refusal=self._refusal,
                lost_response=lambda: NoAnswerError("the response is lost"),
                repeatable=False,
            )
        except _AnsweredError as refused:
            return Answer(refused.status, b'{"message": "simulated"}')
        limit = timeout.total if timeout is not None else None
        if isinstance(limit, int | float) and scheduler.seconds - began > limit:
            raise NoAnswerError(f"no response within {limit} s")
        if self.process.invocation is not None and urlsplit(url).path.endswith("/states") and answer.status == 200:
            self.process.invocation.states_queried_at = began
        return answer

    def _answered(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        response = self.handler(event(method, url, body, headers, self.user_arn, self.user_id))
        if response is None:
            return Answer(500, b'{"message": "Internal Server Error"}')
        return Answer(response["statusCode"], response["body"].encode())

    def _refusal(self) -> Exception:
        status = self.process.simulation.random.choice((403, 429, 500, 503, 0))
        return _AnsweredError(status) if status else NoAnswerError("the connection was refused")


def event(
    method: str, url: str, body: bytes, headers: Mapping[str, str], user_arn: str, user_id: str
) -> dict[str, Any]:
    """Build the event of API Gateway, payload format 2.0."""
    parts = urlsplit(url)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if pair)
    return {
        "version": "2.0",
        "rawPath": parts.path,
        "headers": {name.lower(): value for name, value in headers.items()},
        "queryStringParameters": query or None,
        "requestContext": {
            "http": {"method": method, "path": parts.path},
            "domainName": HOST,
            "stage": "$default",
            "requestId": "simulated",
            "authorizer": {"iam": {"userArn": user_arn, "userId": user_id}},
        },
        "body": body.decode(),
        "isBase64Encoded": False,
    }
