"""The gateway's functions over a table in memory and emulated queues."""

from tests.doubles.gateway_functions import module_clients as module_clients  # noqa: PLC0414
from tests.doubles.mcp_gateway import mcp as mcp  # noqa: PLC0414
from tests.unit.memory_gateway import gateway as gateway  # noqa: PLC0414
from tests.unit.memory_gateway import shared_gateway as shared_gateway  # noqa: PLC0414
