"""Builds the routes of Model Context Protocol."""

from collections.abc import Callable

from asya.capabilities.mcp.calls import McpCalls
from asya.capabilities.mcp.cancel import McpCancellation
from asya.capabilities.mcp.routes import McpRoutes
from asya.function.lambdas.environment import Environment
from asya.gateway.access import AccessRules
from asya.gateway.http.origin import Origins
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.tasks.aws.tasks import Tasks
from asya.tasks.starts.aws.task_starter import TaskStarter


def build_mcp(
    *,
    tasks: Tasks,
    starter: TaskStarter,
    access: AccessRules,
    origins: Origins,
    tool_calls: ToolCalls,
    cancels: CancelRoutes,
    resumes: ResumeRoutes,
    new_id: Callable[[], str],
    warn: Callable[[str], None],
    environment: Environment,
) -> McpRoutes:
    """Build the routes of `/mcp`."""
    return McpRoutes(
        mesh=tool_calls.mesh,
        access=access,
        origins=origins,
        calls=McpCalls(tool_calls, tasks, cancels, resumes),
        cancels=McpCancellation(starter, cancels, tool_calls.slots, environment),
        new_id=new_id,
        warn=warn,
    )
