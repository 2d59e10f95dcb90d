"""Asks gateways for the states of tasks without holding up envelopes (`protocol §5.4`)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from asya.protocol.events import StateQuery, TaskState
from asya.reporting.aws.gateway_client import GatewayClient, GatewayError, NoAnswerError

# For all queries of a batch together.
QUERY_SECONDS = 2.0
# After a query without an answer, a gateway is left alone: each batch would wait for it again.
PAUSE_SECONDS = 30.0


class Notices(Protocol):
    """What operators learn of queries without an answer."""

    def failed(self, problem: str) -> None:
        """A gateway gave no usable answer."""

    def skipped(self) -> None:
        """A batch proceeds without a query, because its gateway did not answer lately."""


class StateQueries:
    """The queries of one process.

    Args:
        monotonic: seconds since an unspecified start.
        own: the URL of the mesh's own gateway, which is asked first: senders of envelopes may name others.
    """

    def __init__(
        self, client: GatewayClient, monotonic: Callable[[], float], notices: Notices, own: str | None
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._notices = notices
        self._own = own
        # By host, because the mesh file allows few hosts, while a sender may name any path.
        self._paused_until: dict[str, float] = {}

    def ask(self, by_url: Mapping[str, Iterable[StateQuery]]) -> dict[str, TaskState]:
        """The states by task id; those that no gateway gives within 2 s are left out."""
        ends_at = self._monotonic() + QUERY_SECONDS
        states: dict[str, TaskState] = {}
        for url, queries in sorted(by_url.items(), key=lambda item: item[0] != self._own):
            host = urlsplit(url).netloc
            if self._monotonic() < self._paused_until.get(host, 0.0):
                self._notices.skipped()
                continue
            seconds = ends_at - self._monotonic()
            if seconds <= 0:
                break
            try:
                states |= {state.id: state for state in self._client.states(url, tuple(queries), seconds=seconds)}
            except NoAnswerError as error:
                self._paused_until[host] = self._monotonic() + PAUSE_SECONDS
                self._notices.failed(f"{error}; not asked again for {PAUSE_SECONDS:g} s")
            except GatewayError as error:
                self._notices.failed(str(error))
        return states
