"""The client of pre-flights, which notes for the checks when it was answered in full."""

from typing import Any

from asya.testing.services.clients import DynamoClient


class StateReads(DynamoClient):
    """The client of pre-flights, which notes for the checks when it was answered in full."""

    def _call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        began, invocation = self._process.monotonic(), self._process.invocation
        if invocation is not None:
            invocation.states_asked_at = began
        answer = super()._call(name, request)
        if invocation is not None and not answer["UnprocessedKeys"]:
            invocation.states_queried_at = began
            if invocation.states_first_read_at is None:
                invocation.states_first_read_at = began
        return answer
