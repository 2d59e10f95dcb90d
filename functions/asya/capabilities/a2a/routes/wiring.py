"""Builds the routes of Agent2Agent."""

from asya.capabilities.a2a.aws.push_configs import PushConfigStore
from asya.capabilities.a2a.routes.calls import A2ARoutes
from asya.capabilities.a2a.routes.lists import A2ALists
from asya.capabilities.a2a.routes.push_configs import PushConfigCalls
from asya.capabilities.a2a.routes.streams import A2AStreams
from asya.function.aws import clients
from asya.gateway.access import AccessRules
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.origin import Origins
from asya.gateway.routes.cancel import CancelRoutes
from asya.gateway.routes.resume import ResumeRoutes
from asya.gateway.routes.tool_calls import ToolCalls
from asya.gateway.streams.event_poller import EventPoller
from asya.tasks.aws.lists import TaskLists
from asya.tasks.aws.partials import PartialStore
from asya.tasks.aws.tasks import Tasks


def build_a2a(
    own: HttpServices,
    *,
    tasks: Tasks,
    lists: TaskLists,
    access: AccessRules,
    origins: Origins,
    tool_calls: ToolCalls,
    cancels: CancelRoutes,
    resumes: ResumeRoutes,
) -> A2ARoutes:
    """Build the routes of `/a2a` and of the agent card."""
    settings, environment = own.settings, own.environment
    client, table = clients.dynamodb(), settings.table_name("tasks")
    poller = EventPoller(tasks, PartialStore(client, table, environment.sleep), environment)
    return A2ARoutes(
        calls=tool_calls,
        cancels=cancels,
        resumes=resumes,
        lists=A2ALists(lists),
        push=PushConfigCalls(settings.table, tasks, PushConfigStore(client, table, settings.table.retention.tasks)),
        streams=A2AStreams(poller, environment),
        access=access,
        origins=origins,
        warn=own.warn,
    )
