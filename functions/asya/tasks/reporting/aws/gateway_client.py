"""The client of other gateways: signed reports with time limits (`protocol §3`, `§13`)."""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError

from asya.function.nack import ServiceError
from asya.function.sqs import pack
from asya.protocol.events import EventResult, EventResults, Report
from asya.protocol.exact_json import encode_json

_CONNECT_TIMEOUT = 1.0  # seconds
# The limits of one call; the endpoint accepts 500 items and 2,900 KiB.
_MAX_ITEMS = 200
_MAX_BYTES = 2 * 1024 * 1024
# The answers after which a report is not retried: accepted, or refused for good (`protocol §5`, reports).
_FINAL_STATUSES = frozenset({204, 400, 404})


class GatewayError(ServiceError):
    """The endpoint did not accept a call; a retry may succeed."""


class RefusedByGatewayError(GatewayError):
    """The endpoint refused a call for good, with status 400 or 404."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class CredentialsSource(Protocol):
    """A source of credentials, such as a botocore session."""

    def get_credentials(self) -> Credentials | None:
        """The current credentials."""


class GatewayClient:
    """Reports to gateways by HTTP.

    Args:
        session: the source of the credentials for signatures.
        pool: the connection pool; the client creates its own without one.
    """

    def __init__(self, session: CredentialsSource, region: str, pool: urllib3.PoolManager | None = None) -> None:
        self._session = session
        self._region = region
        self._pool = pool or urllib3.PoolManager(maxsize=4, retries=False)

    def report(self, base_url: str, events: Sequence[Report], *, seconds: float = 5.0) -> tuple[EventResult, ...]:
        """Report events in one or more calls, and return their results in the same order.

        Args:
            seconds: the time limit of each call.

        Raises:
            GatewayError: a call failed. Earlier calls may have succeeded; a retry is safe, because events are idempotent.
        """
        results: list[EventResult] = []
        for group in pack(map(_Item.of, events), count=_MAX_ITEMS, size=_MAX_BYTES):
            results += self._report_group(base_url, group, seconds)
        return tuple(results)

    def _report_group(self, base_url: str, group: "Sequence[_Item]", seconds: float) -> Sequence[EventResult]:
        body = b"[" + b",".join(item.text for item in group) + b"]"
        try:
            answer = self._post(base_url, "/api/v1/mesh/events", body, seconds)
        except RefusedByGatewayError as refusal:
            # The refusal of the call applies to each of its events.
            return [EventResult(id=item.event_id, status=refusal.status, error=str(refusal)) for item in group]
        return _results(answer, len(group))

    def _post(self, base_url: str, path: str, body: bytes, seconds: float) -> bytes:
        url = base_url.rstrip("/") + path
        timeout = urllib3.Timeout(connect=min(_CONNECT_TIMEOUT, seconds), total=seconds)
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
            if answer.status in _FINAL_STATUSES:
                raise RefusedByGatewayError(answer.status, problem)
            raise GatewayError(problem)
        return answer.data

    def _signed_headers(self, url: str, body: bytes) -> dict[str, str]:
        host = urlsplit(url).netloc
        request = AWSRequest("POST", url, data=body, headers={"content-type": "application/json", "host": host})
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise GatewayError("there are no AWS credentials to sign the call; check the role of the function")
            SigV4Auth(credentials, "execute-api", self._region).add_auth(request)
        except BotoCoreError as error:
            raise GatewayError(f"signing the call failed: {error}") from error
        return dict(request.headers.items())


def is_final(result: EventResult) -> bool:
    """Whether a report was accepted or refused for good; other results are retried."""
    return result.status in _FINAL_STATUSES


def address_of(url: str) -> str:
    """The URL to connect to. Names under `.localhost` are this machine (RFC 6761), but few resolvers know them."""
    parts = urlsplit(url)
    if not (parts.hostname or "").endswith(".localhost"):
        return url
    port = f":{parts.port}" if parts.port else ""
    return parts._replace(netloc=f"127.0.0.1{port}").geturl()


class _Item(msgspec.Struct, frozen=True):
    """An encoded event."""

    event_id: str
    text: bytes

    @classmethod
    def of(cls, event: Report) -> "_Item":
        return cls(event.id, encode_json(event))

    @property
    def size(self) -> int:
        return len(self.text)


def _results(body: bytes, count: int) -> Sequence[EventResult]:
    try:
        results = msgspec.json.decode(body, type=EventResults).items
    except msgspec.MsgspecError as error:
        raise GatewayError(f"the endpoint's answer cannot be decoded: {error}") from error
    if len(results) != count:
        raise GatewayError(f"the endpoint answered {len(results)} of {count} items")
    return results
