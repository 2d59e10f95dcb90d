"""The client of pre-flights, which notes for the checks when it was answered in full."""

from typing import Any

from asya.testing.services.storage import DynamoClient


class StateReads(DynamoClient):
    """The client of pre-flights, which notes for the checks when it was answered in full."""

    def _call(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        began = self._process.simulation.scheduler.seconds
        answer = super()._call(name, request)
        if self._process.invocation is not None and not answer["UnprocessedKeys"]:
            self._process.invocation.states_queried_at = began
        return answer
