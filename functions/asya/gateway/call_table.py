"""The calls of the gateway, as their capabilities declare them (`protocol §13`, `§14`).

Each function finds its own calls here. API Gateway's routes (`asya.gateway.doors`), the OpenAPI document and the local modes
read the same table.
"""

import msgspec
from msgspec import UNSET

from asya.api_call import ApiCall
from asya.capabilities.a2a.http_calls import CALLS as _A2A
from asya.capabilities.dead_letters.http_calls import CALLS as _DEAD_LETTERS
from asya.capabilities.fan_in.http_calls import CALLS as _FAN_IN
from asya.capabilities.legacy.http_calls import CALLS as _LEGACY
from asya.capabilities.mcp.http_calls import CALLS as _MCP
from asya.capabilities.operations.http_calls import CALLS as _OPERATIONS
from asya.capabilities.pauses.http_calls import CALLS as _PAUSE
from asya.capabilities.triggers.http_calls import CALLS as _TRIGGERS
from asya.gateway.http_calls import CALLS as _GATEWAY
from asya.protocol.mesh_table import MeshTable
from asya.tasks.http_calls import CALLS as _TASKS

CALLS: tuple[ApiCall, ...] = (
    *(*_TASKS, *_GATEWAY, *_FAN_IN, *_PAUSE, *_DEAD_LETTERS, *_MCP, *_A2A, *_OPERATIONS, *_TRIGGERS, *_LEGACY),
)
"""The calls of all capabilities of the product."""


def calls_of(mesh: MeshTable) -> tuple[ApiCall, ...]:
    """Return the calls of a mesh."""
    return (*(call.of(mesh) for call in CALLS if call.is_in(mesh)), *own_calls(mesh))


def own_calls(mesh: MeshTable) -> tuple[ApiCall, ...]:
    """Return the calls of capabilities that the mesh file names."""
    if mesh.own_calls is UNSET:
        return ()
    return tuple(msgspec.convert(call, ApiCall, str_keys=True) for call in mesh.own_calls.calls)
