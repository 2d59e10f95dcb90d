"""The stack with the HTTP APIs, their functions and the sweep of deadlines."""

from aws_cdk import CfnOutput
from constructs import Construct

from asya_infra.constructs.gateway.deadline_sweep import deadline_sweep
from asya_infra.constructs.gateway.gateway import Gateway
from asya_infra.constructs.gateway.role_listing import role_listing
from asya_infra.constructs.layer import mesh_layer
from asya_infra.mesh import Mesh
from asya_infra.stacks.base import MeshStack


class GatewayStack(MeshStack):
    """The gateway.

    Attributes:
        address: the API that the mesh's functions report to.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "gateway")
        layer = mesh_layer(self, mesh)
        role_listing(self, mesh, layer)
        gateway = Gateway(self, mesh, layer)
        self.address = gateway.address
        deadline_sweep(self, mesh, layer)
        CfnOutput(self, "GatewayUrl", value=self.address.url)
        CfnOutput(self, "GatewayApiId", value=gateway.api_id)
        if mesh.table.webhooks:
            # The name of a trigger follows.
            CfnOutput(self, "HookUrl", value=f"{self.address.url}/hooks/")
        if gateway.live is not None:
            CfnOutput(self, "StreamUrl", value=gateway.live.url)
        if gateway.token_api is not None:
            CfnOutput(self, "JwtGatewayUrl", value=gateway.token_api.api_endpoint)
            CfnOutput(self, "JwtGatewayApiId", value=gateway.token_api.api_id)
