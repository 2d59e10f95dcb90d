"""Speaking to the status endpoint: signed, bounded in time, towards allowed hosts only (`protocol §3`, `§13`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError

from asya.messaging.batching import pack
from asya.protocol.events import EventResult, EventResults, Report, StateQuery, TaskState, TaskStates

_SECONDS_TO_CONNECT = 1.0
# One call's share; the endpoint takes 500 items and 4 MiB.
_ITEMS_AT_ONCE = 200
_BYTES_AT_ONCE = 2 * 1024 * 1024
_encoder = msgspec.json.Encoder()
# An answer that means: taken, or never will be (`protocol §5`, reports).
_SETTLED = frozenset({204, 400, 404})


class GatewayError(RuntimeError):
    """The endpoint did not take something that it may take later: it is down, slow, throttling or refusing."""


class RefusedByGatewayError(GatewayError):
    """The endpoint refused a call for good (400, 404)."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class CredentialsSource(Protocol):
    """Where the process's credentials come from (a botocore session)."""

    def get_credentials(self) -> Credentials | None:
        """Current credentials, refreshed as needed."""


class GatewayClient:
    """The calls that the mesh's own functions make.

    Args:
        session: whose credentials sign them.
        pool: makes the connections; its own if none is given.
    """

    def __init__(self, session: CredentialsSource, region: str, pool: urllib3.PoolManager | None = None) -> None:
        self._session = session
        self._region = region
        self._pool = pool or urllib3.PoolManager(maxsize=4, retries=False)

    def report(self, base_url: str, events: Sequence[Report], *, seconds: float = 5.0) -> tuple[EventResult, ...]:
        """Report events, in as many calls as it takes; which of them were taken is in the answer, in the same order.

        Args:
            seconds: for each call.

        Raises:
            GatewayError: if any of it was not answered; some may have been taken, and are taken again without harm.
        """
        results: list[EventResult] = []
        for group in pack(map(_Item.of, events), count=_ITEMS_AT_ONCE, size=_BYTES_AT_ONCE):
            results += self._report_group(base_url, group, seconds)
        return tuple(results)

    def _report_group(self, base_url: str, group: "Sequence[_Item]", seconds: float) -> Sequence[EventResult]:
        body = b"[" + b",".join(item.text for item in group) + b"]"
        try:
            answer = self._post(base_url, "/api/v1/mesh/events", body, seconds)
        except RefusedByGatewayError as refusal:
            # The answer to the call is the answer to each of its events.
            return [EventResult(id=item.event_id, status=refusal.status, error=str(refusal)) for item in group]
        return _of_length(_decoded(answer, EventResults).items, len(group))

    def states(self, base_url: str, queries: Sequence[StateQuery], *, seconds: float = 1.0) -> tuple[TaskState, ...]:
        """The states of tasks and their roots, for pre-flight, in as many calls as it takes.

        Args:
            seconds: for each call.

        Raises:
            GatewayError: if there was no answer in time.
        """
        found: list[TaskState] = []
        for start in range(0, len(queries), _ITEMS_AT_ONCE):
            group = queries[start : start + _ITEMS_AT_ONCE]
            answer = self._post(base_url, "/api/v1/mesh/states", _encoder.encode(group), seconds)
            found += _of_length(_decoded(answer, TaskStates).items, len(group))
        return tuple(found)

    def _post(self, base_url: str, path: str, body: bytes, seconds: float) -> bytes:
        url = base_url.rstrip("/") + path
        timeout = urllib3.Timeout(connect=min(_SECONDS_TO_CONNECT, seconds), total=seconds)
        try:
            answer = self._pool.urlopen(
                "POST",
                address_of(url),
                body=body,
                headers=self._signed_headers(url, body),
                timeout=timeout,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise GatewayError(f"no answer from {url}: {error}") from error
        if answer.status != 200:
            problem = f"{url} answered {answer.status}: {answer.data[:200].decode('utf-8', 'replace')}"
            if answer.status in _SETTLED:
                raise RefusedByGatewayError(answer.status, problem)
            raise GatewayError(problem)
        return answer.data

    def _signed_headers(self, url: str, body: bytes) -> dict[str, str]:
        host = urlsplit(url).netloc
        request = AWSRequest("POST", url, data=body, headers={"content-type": "application/json", "host": host})
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise GatewayError("there are no AWS credentials to sign the report with")
            SigV4Auth(credentials, "execute-api", self._region).add_auth(request)
        except BotoCoreError as error:
            raise GatewayError(f"signing the report failed: {error}") from error
        return dict(request.headers.items())


def is_settled(result: EventResult) -> bool:
    """Whether a report was taken or never will be; anything else is to be tried again."""
    return result.status in _SETTLED


def address_of(url: str) -> str:
    """Where to connect to. Names under `.localhost` are this machine (RFC 6761), though few resolvers know it."""
    parts = urlsplit(url)
    if not (parts.hostname or "").endswith(".localhost"):
        return url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"127.0.0.1{port}").geturl()


@dataclass(frozen=True, slots=True)
class _Item:
    """An event as it goes into a request."""

    event_id: str
    text: bytes

    @classmethod
    def of(cls, event: Report) -> "_Item":
        return cls(event.id, _encoder.encode(event))

    @property
    def size(self) -> int:
        return len(self.text)


Answer = TypeVar("Answer", EventResults, TaskStates)
Item = TypeVar("Item", EventResult, TaskState)


def _of_length(items: tuple[Item, ...], length: int) -> tuple[Item, ...]:
    if len(items) != length:
        raise GatewayError(f"the endpoint answered {len(items)} of {length} items")
    return items


def _decoded(body: bytes, kind: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise GatewayError(f"the endpoint's answer is not understood: {error}") from error


def allowed_hosts(configured_url: str | None, extra: Iterable[str]) -> frozenset[str]:
    """The hosts that status callbacks may go to: the deployment's own and those the mesh file names."""
    own = urlsplit(configured_url).netloc if configured_url else ""
    return frozenset({own, *extra} - {""})
