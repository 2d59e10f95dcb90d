"""Push notifications: the changes of watched tasks call their function, and what leaves is kept instead of sent."""

import json
import pkgutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from asya import registry
from asya.capabilities.a2a.aws.push_sender import headers_of
from asya.capabilities.a2a.lambdas.push import is_watched
from asya.capabilities.a2a.push import PushTarget
from asya.function.aws.settings import Settings
from asya.manifest import TableChanges
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas.entry_point import ChangesEntryPoint
from asya.sidecar.lambdas.services import Services
from asya.testing.services.process import Process, ProcessCrashed, Simulation, running

_TIMEOUT = 60.0
_AGAIN = 1.0
"""Seconds until a batch comes again whose function has failed."""


@dataclass(frozen=True)
class Notification:
    """A push notification of Agent2Agent.

    Attributes:
        url: The address that the client has named.
        headers: The headers, such as the client's token.
        content: The task, in the form of the client's version.
    """

    url: str
    headers: Mapping[str, str]
    content: Any


@dataclass
class Notifications:
    """Delivers the changes of watched tasks to their function, as DynamoDB Streams does, and keeps what is sent.

    Attributes:
        sent: The notifications, oldest first.
    """

    simulation: Simulation
    mesh: MeshTable
    settings: Callable[[str], Settings]
    new_process: Callable[[str], Process]
    new_services: Callable[[Settings, Process], Services]
    sent: list[Notification] = field(default_factory=list)
    _count: int = 0

    def changed(self, table: str, before: Any, after: Any) -> None:
        """Take the write of an item; see `MemoryDynamo.on_write`."""
        if table != names.table_name(self.mesh.namespace, "tasks") or after is None:
            return
        images = {"NewImage": after} | ({"OldImage": before} if before is not None else {})
        record = {"dynamodb": {"Keys": {"pk": after["pk"], "sk": after["sk"]}, **images}}
        if is_watched(record):
            for function in registry.functions_of(self.mesh):
                if isinstance(function.called_by, TableChanges):
                    self._start(function.name, function.entry_point, {"Records": [record]})

    def sender(self, _allowed_hosts: Collection[str]) -> "_Keeps":
        """Return what stands for `PushSender`."""
        return _Keeps(self.sent)

    def _start(self, name: str, entry_point: str, event: Mapping[str, Any], delay: float = 0.0) -> None:
        self.simulation.scheduler.start(lambda: self._run(name, entry_point, event), delay)

    def _run(self, name: str, entry_point: str, event: Mapping[str, Any]) -> None:
        self._count += 1
        process = self.new_process(f"{name}/{self._count}")
        process.ends_at = self.simulation.scheduler.seconds + _TIMEOUT
        with running(process):
            try:
                function: ChangesEntryPoint = pkgutil.resolve_name(entry_point)
                function.start(self.new_services(self.settings(name), process)).process(event)
            except (ProcessCrashed, Exception) as error:  # noqa: BLE001 - the batch comes again, as on AWS
                process.note(f"raised {error!r}")
                self._start(name, entry_point, event, _AGAIN)


@dataclass(frozen=True)
class _Keeps:
    """Stands for `PushSender`: the kit makes no calls over the network."""

    sent: list[Notification]

    def send(self, target: PushTarget, body: bytes) -> None:
        """Keep one notification."""
        self.sent.append(Notification(target.url, headers_of(target), json.loads(body)))
