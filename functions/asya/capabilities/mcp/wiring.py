"""Builds the routes of Model Context Protocol."""

from asya.capabilities.mcp.calls import McpCalls
from asya.capabilities.mcp.cancel import McpCancellation
from asya.capabilities.mcp.routes import McpRoutes
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.origin import Origins
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import TaskStarter


def build_mcp(
    own: HttpServices,
    *,
    tasks: Tasks,
    starter: TaskStarter,
    access: AccessRules,
    origins: Origins,
    tool_calls: ToolCalls,
    cancels: CancelRoutes,
    resumes: ResumeRoutes,
) -> McpRoutes:
    """Build the routes of `/mcp`."""
    return McpRoutes(
        mesh=tool_calls.mesh,
        access=access,
        origins=origins,
        calls=McpCalls(tool_calls, tasks, cancels, resumes),
        cancels=McpCancellation(starter, cancels, tool_calls.slots, own.environment),
        new_id=own.new_id,
        warn=own.warn,
    )
