"""Counts what AWS would charge for a mesh in memory: calls, units of DynamoDB, invocations, metrics and bytes of logs."""

from __future__ import annotations

import io
from collections import Counter
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya import registry
from asya.function.aws.telemetry import Telemetry
from asya.protocol import names
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.services import functions as simulated_functions
from asya.testing.services import gateway as simulated_gateway
from asya.testing.services.event_source import EventSources
from asya.testing.services.functions import QuietTelemetry, SystemFunctions
from asya.testing.services.gateway import GatewayFunction
from asya.testing.services.process import Process
from tests.doubles.write_units import item_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asya.protocol.mesh_table import MeshTable
    from asya.testing.deployment import Deployment
    from asya.testing.services.queues import Message

WRITE_BYTES, READ_BYTES, REQUEST_BYTES = 1024, 4096, 64 * 1024
_S3_WRITES = ("PutObject", "ListObjectsV2")
_S3_READS = ("GetObject", "HeadObject")


@dataclass
class CallMeter:
    """What a mesh has used.

    Attributes:
        used: the numbers by what AWS charges; those of functions have the name of the function after a colon.
        metrics: the custom metrics, each once: its name, the actor (empty for the mesh) and a further dimension.
        requests: the requests of SQS by queue and action.
    """

    used: Counter[str] = field(default_factory=Counter)
    metrics: set[tuple[str, str, str]] = field(default_factory=set)

    @contextmanager
    def reading(self, cloud: Deployment) -> Iterator[CallMeter]:
        """Count what happens meanwhile."""
        tables = cloud.tables
        noted = tables.on_write

        def on_write(table: str, before: Any, after: Any) -> None:
            self._written(cloud.table, table, before, after)
            if noted is not None:
                noted(table, before, after)

        with ExitStack() as stack:
            tables.on_write = on_write
            stack.callback(setattr, tables, "on_write", noted)
            lines = stack.enter_context(redirect_stdout(_Length(self.used)))
            assert lines is not None
            for module in (simulated_functions, simulated_gateway):
                stack.enter_context(
                    mock.patch.object(module, "QuietTelemetry", lambda process, table: _Metered(process, table, self))
                )
            self._around(stack, Process, "_execute", self._executed)
            for name in ("get_item", "batch_get_item", "query"):
                self._around(stack, MemoryDynamo, name, self._read)
            self._around(stack, EventSources, "_invoke", self._polled)
            self._around(stack, GatewayFunction, "handle", self._asked)
            self._around(stack, SystemFunctions, "run", self._swept)
            yield self

    def _around(self, stack: ExitStack, owner: type, name: str, note: Callable[..., None]) -> None:
        original = getattr(owner, name)

        def around(own: Any, *arguments: Any, **named: Any) -> Any:
            answer = original(own, *arguments, **named)
            note(own, answer, *arguments, **named)
            return answer

        stack.enter_context(mock.patch.object(owner, name, around))

    def _executed(self, _process: Process, _answer: Any, service: str, what: str, _do: Any) -> None:
        action, _, rest = what.partition(" ")
        if service == "sqs":
            self.used["sqs requests"] += 1
        elif service == "s3" and action in _S3_WRITES:
            self.used["s3 writes"] += 1
        elif service == "s3" and action in _S3_READS:
            self.used["s3 reads"] += 1
        del rest

    def _written(self, mesh: MeshTable, table: str, before: Any, after: Any) -> None:
        """Count the write units of an item and of the entries of its indexes."""
        [declared] = [
            each for each in registry.of(mesh).tables.values() if table == names.table_name(mesh.namespace, each.name)
        ]
        self.used["write units"] += _write_units(before or {}, after or {})
        for index in declared.indexes:
            shown = {"pk", "sk", index.partition, index.sort, *index.included}
            was, is_now = (
                {key: value for key, value in item.items() if key in shown}
                if item and index.partition in item and index.sort in item
                else {}
                for item in (before, after)
            )
            if was != is_now:
                moves = was and is_now and any(was[key] != is_now[key] for key in (index.partition, index.sort))
                self.used["write units"] += _write_units(was, is_now) * (2 if moves else 1)

    def _read(self, _tables: MemoryDynamo, answer: dict[str, Any], **request: Any) -> None:
        if "RequestItems" in request:
            [(name, content)] = request["RequestItems"].items()
            found = answer["Responses"][name]
            missing = len(content["Keys"]) - len(found)
            units = sum(_read_units(item_size(item)) for item in found) + missing
            self.used["read units"] += units * (1 if content.get("ConsistentRead") else 0.5)
            return
        items = answer.get("Items", [answer["Item"]] if "Item" in answer else [])
        size = sum(map(item_size, items))
        self.used["read units"] += _read_units(size) * (1 if request.get("ConsistentRead") else 0.5)

    def _polled(self, sources: EventSources, _answer: Any, queue: str, messages: list[Message]) -> None:
        """Lambda receives a batch, invokes the function and deletes the batch."""
        size = sum(len(message.body.encode()) for message in messages)
        self.used["sqs requests"] += max(1, ceil(size / REQUEST_BYTES)) + 1
        self.used[f"lambda calls: {sources.functions[queue].actor}"] += 1

    def _asked(self, function: GatewayFunction, _answer: Any, _event: Any) -> None:
        self.used["http calls"] += 1
        self.used[f"lambda calls: {function.name}"] += 1

    def _swept(self, _functions: SystemFunctions, _answer: Any, name: str) -> None:
        self.used[f"lambda calls: {name}"] += 1


def _write_units(before: Any, after: Any) -> int:
    return max(1, ceil(max(item_size(before), item_size(after)) / WRITE_BYTES))


def _read_units(size: int) -> int:
    return max(1, ceil(size / READ_BYTES))


class _Length(io.TextIOBase):
    """Counts the bytes that functions print, which CloudWatch stores."""

    def __init__(self, used: Counter[str]) -> None:
        self._used = used

    def write(self, text: str, /) -> int:
        """Count a text."""
        self._used["log bytes"] += len(text.encode())
        return len(text)


class _Metered(QuietTelemetry):
    """Writes log lines and metrics as on AWS, and notes the metrics."""

    def __init__(self, process: Process, table: MeshTable, meter: CallMeter) -> None:
        super().__init__(process, table)
        self._meter, self._own = meter, process.name.partition("/")[0]
        self._real = Telemetry(table.namespace, self._own)
        self.log = self._real.log

    def count(self, name: str, amount: float = 1, *, by: Any = None, actor: str | None = None) -> None:
        """See `Telemetry`."""
        super().count(name, amount, by=by, actor=actor)
        self._note(name, actor, ":".join(by or ()))
        self._real.count(name, amount, by=by, actor=actor)

    def measure(self, name: str, value: float, unit: Any, *, actor: str | None = None) -> None:
        """See `Telemetry`."""
        super().measure(name, value, unit, actor=actor)
        self._note(name, actor, "")
        self._real.measure(name, value, unit, actor=actor)

    def flush(self) -> None:
        """See `Telemetry`."""
        self._real.flush()

    def _note(self, name: str, actor: str | None, by: str) -> None:
        self._meter.metrics |= {(name, actor or self._own, by), (name, "", "")}
