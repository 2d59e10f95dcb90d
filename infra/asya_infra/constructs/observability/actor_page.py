"""The dashboard of one actor, which a variable of the dashboard picks."""

from typing import Any

from asya.protocol import names
from asya_infra.constructs.observability.drawn import draw
from asya_infra.constructs.observability.series import PLACEHOLDER
from asya_infra.constructs.observability.widgets import ERRORS, Page, log_table, text
from asya_infra.mesh import Mesh


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
