"""The stacks with the alarms and the dashboards. Nothing depends on them, so their failure stops no message."""

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from asya_infra.constructs.observability.actor_page import actor_page
from asya_infra.constructs.observability.alarm_topic import alarm_actions
from asya_infra.constructs.observability.alarms import add_alarm
from asya_infra.constructs.observability.mesh_alarms import mesh_alarms
from asya_infra.constructs.observability.overview import overview
from asya_infra.mesh import Mesh
from asya_infra.stacks.base import MeshStack


class AlarmsStack(MeshStack):
    """The alarms of the mesh and the topic that they tell. The local cloud has none of it: it refuses metric math."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "alarms")
        actions = alarm_actions(self, mesh)
        for alarm in mesh_alarms(mesh):
            add_alarm(self, mesh.namespace, alarm, actions)


class DashboardsStack(MeshStack):
    """The dashboards: an overview, and one page for any actor."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "dashboards")
        # Dashboards are global in an account, so their names have the region.
        name = f"asya-{mesh.namespace}-{mesh.addresses.region}"
        for construct_id, dashboard_name, body in (
            ("Overview", name, overview(mesh)),
            ("Actor", f"{name}-actor", actor_page(mesh)),
        ):
            cloudwatch.CfnDashboard(
                self, construct_id, dashboard_name=dashboard_name, dashboard_body=self.to_json_string(body)
            )
