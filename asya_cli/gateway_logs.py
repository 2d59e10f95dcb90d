"""The logs of a mesh of `asya dev`, which has no log groups: its gateway has the lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.capabilities.operations.aws.logs import FunctionLogs
from asya.client.errors import NotFoundError
from asya.client.operations import Operations
from asya.protocol import names
from asya.protocol.times import from_epoch_seconds
from asya_cli import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.capabilities.operations.log_lines import LogLine
    from asya.client.mesh_client import MeshClient


@dataclass(frozen=True)
class GatewayLogs:
    """The lines of functions as the gateway shows them; it has the methods of `FunctionLogs` that `asya logs` needs."""

    operations: Operations

    def has_logs(self, actor: str) -> bool:
        """Return whether the mesh has a function for an actor."""
        try:
            next(self.operations.actor_lines(actor, clock.now()), None)
        except NotFoundError:
            return False
        return True

    def lines(self, actor: str, start: float, pattern: str = "") -> Iterator[LogLine]:
        """Read the lines of an actor's function; one that the mesh does not have has no lines.

        Args:
            actor: An actor or a system function.
            start: The earliest time in epoch seconds.
            pattern: A text in quotes that a line has; empty for all lines.
        """
        try:
            for line in self.operations.actor_lines(actor, from_epoch_seconds(start)):
                if pattern.strip('"') in line.line:
                    yield line
        except NotFoundError:
            return


def logs_of(mesh: MeshClient) -> FunctionLogs | GatewayLogs:
    """Return the logs of a mesh: its log groups, or the lines of its gateway if it has no groups."""
    groups = FunctionLogs(mesh.connection.logs(), mesh.connection.namespace, clock.now)
    if mesh.connection.endpoint_url is None or groups.has_logs(names.GATEWAY_API):
        return groups
    return GatewayLogs(Operations(mesh))
