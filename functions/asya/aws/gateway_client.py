"""Speaking to the status endpoint: signed, bounded in time, towards allowed hosts only (`protocol §3`, `§13`)."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from asya.protocol.events import EventResult, EventResults, StateQuery, TaskEvent, TaskState, TaskStates

_SECONDS_TO_CONNECT = 1.0
_encoder = msgspec.json.Encoder()
# An answer that means: taken, or never will be (`protocol §5`, reports).
_SETTLED = frozenset({204, 400, 404})


class GatewayError(RuntimeError):
    """The endpoint did not take something that it may take later: it is down, slow, throttling or refusing."""


class CredentialsSource(Protocol):
    """Where the process's credentials come from (a botocore session)."""

    def get_credentials(self) -> Credentials | None:
        """Current credentials, refreshed as needed."""


class GatewayClient:
    """The calls that the mesh's own functions make."""

    def __init__(self, session: CredentialsSource, region: str) -> None:
        self._session = session
        self._region = region
        self._pool = urllib3.PoolManager(maxsize=4, retries=False)

    def report(self, base_url: str, events: Sequence[TaskEvent], *, seconds: float = 5.0) -> tuple[EventResult, ...]:
        """Report a batch of events; which of them were taken is in the answer, in the same order.

        Raises:
            GatewayError: if the batch as a whole was not taken.
        """
        if not events:
            return ()
        answer = self._post(base_url, "/api/v1/mesh/events", _encoder.encode(events), seconds)
        return _decoded(answer, EventResults).items

    def states(self, base_url: str, queries: Sequence[StateQuery], *, seconds: float = 1.0) -> tuple[TaskState, ...]:
        """The states of tasks and their roots, for pre-flight.

        Raises:
            GatewayError: if there was no answer in time.
        """
        answer = self._post(base_url, "/api/v1/mesh/states", _encoder.encode(queries), seconds)
        return _decoded(answer, TaskStates).items

    def _post(self, base_url: str, path: str, body: bytes, seconds: float) -> bytes:
        url = base_url.rstrip("/") + path
        timeout = urllib3.Timeout(connect=min(_SECONDS_TO_CONNECT, seconds), total=seconds)
        try:
            answer = self._pool.urlopen(
                "POST",
                _address(url),
                body=body,
                headers=self._signed_headers(url, body),
                timeout=timeout,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise GatewayError(f"no answer from {url}: {error}") from error
        if answer.status != 200:
            raise GatewayError(f"{url} answered {answer.status}: {answer.data[:200].decode('utf-8', 'replace')}")
        return answer.data

    def _signed_headers(self, url: str, body: bytes) -> dict[str, str]:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise GatewayError("there are no AWS credentials to sign the report with")
        host = urlsplit(url).netloc
        request = AWSRequest("POST", url, data=body, headers={"content-type": "application/json", "host": host})
        SigV4Auth(credentials, "execute-api", self._region).add_auth(request)
        return dict(request.headers.items())


def is_settled(result: EventResult) -> bool:
    """Whether a report was taken or never will be; anything else is to be tried again."""
    return result.status in _SETTLED


def _address(url: str) -> str:
    """Where to connect to. Names under `.localhost` are this machine (RFC 6761), though few resolvers know it."""
    parts = urlsplit(url)
    if not (parts.hostname or "").endswith(".localhost"):
        return url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"127.0.0.1{port}").geturl()


Answer = TypeVar("Answer", EventResults, TaskStates)


def _decoded(body: bytes, kind: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise GatewayError(f"the endpoint's answer is not understood: {error}") from error


def allowed_hosts(configured_url: str | None, extra: Iterable[str]) -> frozenset[str]:
    """The hosts that status callbacks may go to: the deployment's own and those the mesh file names."""
    own = urlsplit(configured_url).netloc if configured_url else ""
    return frozenset({own, *extra} - {""})
