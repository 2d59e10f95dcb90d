"""The dashboard of one actor, which a variable of the dashboard picks."""

from typing import Any

from asya.protocol import names
from asya_infra.constructs.observability.drawn import draw
from asya_infra.constructs.observability.series import PLACEHOLDER
from asya_infra.constructs.observability.widgets import Page, log_table, text
from asya_infra.mesh import Mesh

_ERRORS = (
    "fields @timestamp, level, message, envelope_id, reason",
    'filter level in ["ERROR", "WARNING"] or @message like /Task timed out|Runtime.ExitError|signal: killed/',
    "sort @timestamp desc",
    "limit 20",
)


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
    page.row(log_table("Errors and warnings", [mesh.addresses.log_group_name(PLACEHOLDER)], _ERRORS))
    return {"start": "-PT3H", "variables": [variable], "widgets": page.placed}
