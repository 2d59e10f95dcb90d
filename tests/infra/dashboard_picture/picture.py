"""The picture in docs/how-to/watch-a-mesh.md."""

import re
from typing import Any

from asya_infra.constructs.observability.dashboards import overview
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import Options
from tests.infra.dashboard_picture import recording
from tests.infra.dashboard_picture.page import draw
from tests.paths import PROJECT

PICTURE = PROJECT / "docs" / "images" / "dashboard.svg"


def example_overview() -> dict[str, Any]:
    """Return the body of the overview of the example mesh. Synthesis would take seconds and give the same widgets."""
    file = PROJECT / "mesh.yaml"
    return overview(Mesh(load_mesh(file, ""), Options(mesh=file)))


def metric_names(body: dict[str, Any]) -> set[str]:
    """Return the names of the metrics on a dashboard."""
    entries = [entry for widget in body["widgets"] for entry in widget["properties"].get("metrics", [])]
    expressions = " ".join(entry[0]["expression"] for entry in entries if len(entry) == 1)
    return {entry[1] for entry in entries if len(entry) > 1} | set(re.findall(r'MetricName="(\w+)"', expressions))


def picture(body: dict[str, Any]) -> str:
    """Return the picture of an overview of the example mesh."""
    return draw(body, recording.read(), "The overview dashboard of the mesh flights")
