"""The dashboards of a mesh: the overview that an operator keeps open, and the page of one actor.

The overview has four numbers, then the tasks, the actors, the crew and what failed last. A variable of the page picks the actor.
"""

from typing import Any

from asya.protocol import names
from asya_infra.constructs.observability.drawn import draw
from asya_infra.constructs.observability.series import PLACEHOLDER
from asya_infra.constructs.observability.widgets import ERRORS, Page, log_table, text
from asya_infra.mesh import Mesh


def overview(mesh: Mesh) -> dict[str, Any]:
    """Return the body of the dashboard. Its size depends on the features of the mesh, not on the number of its actors."""
    page = Page(mesh.addresses.region)
    _head(page, mesh)
    draw(page, mesh, "overview")
    _failures(page, mesh)
    return {"start": "-PT3H", "widgets": page.placed}


def _head(page: Page, mesh: Mesh) -> None:
    dashboard = f"asya-{mesh.namespace}-{mesh.addresses.region}"
    links = (
        f"[One actor](#dashboards:name={dashboard}-actor)",
        f"[Alarms](#alarmsV2:?search=asya-{mesh.namespace}-)",
        f"[Logs](#logsV2:log-groups$3FlogGroupNameFilter$3Dasya-{mesh.namespace}-)",
    )
    page.row(text(f"# Mesh {mesh.namespace}\n{' · '.join(links)}", height=2))


def _failures(page: Page, mesh: Mesh) -> None:
    page.section("What failed last")
    group = mesh.addresses.log_group_name(names.SUMP)
    query = (
        "fields @timestamp, envelope_id, coalesce(failed_actor, queue) as actor, reason, error_type, error_message",
        'filter message in ["envelope failed", "dead letter", "unreadable message"]',
        "sort @timestamp desc",
        "limit 20",
    )
    page.row(log_table("The last 20 failures", group, query))
    page.row(log_table("Errors and warnings of the crew", group, ERRORS))
    region, table = mesh.addresses.region, names.table_name(mesh.namespace, "tasks")
    task = f"https://console.aws.amazon.com/dynamodbv2/home?region={region}#item-explorer?table={table}"
    link = f"[{group}](#logsV2:log-groups/log-group/{group.replace('/', '$252F')})"
    how = "`asya status ID` shows a task: its route, its error with traceback, and its stored envelope"
    page.row(text(f"{how} ([all tasks]({task})). Log: {link}", height=2))


def actor_page(mesh: Mesh) -> dict[str, Any]:
    """Return the body of the dashboard. The names in the variable are those that reported messages in the last two weeks."""
    namespace = mesh.namespace
    search = f'{{{names.METRICS_NAMESPACE},namespace,actor}} MetricName="Received" namespace="{namespace}"'
    variable = {
        "type": "pattern",
        "pattern": PLACEHOLDER,
        "inputType": "select",
        "id": "actor",
        "label": "Actor",
        "defaultValue": "__FIRST",
        "visible": True,
        "search": search,
        "populateFrom": "actor",
    }
    page = Page(mesh.addresses.region)
    back = f"[Overview](#dashboards:name=asya-{namespace}-{mesh.addresses.region})"
    page.row(text(f"# {PLACEHOLDER} of the mesh {namespace}\n{back}", height=2))
    draw(page, mesh, "actor")
    title = "Errors and warnings (the overview has those of the crew)"
    page.row(log_table(title, mesh.addresses.log_group_name(PLACEHOLDER), ERRORS))
    return {"start": "-PT3H", "variables": [variable], "widgets": page.placed}
