"""The HTTP API and the functions behind it."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from asya.protocol import names
from infra.gateway import Gateway
from infra.layer import mesh_layer
from infra.mesh import Mesh


class GatewayStack(Stack):
    """The gateway; `address` is for the functions that report to it."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, names.stack_name(mesh.namespace, "gateway"))
        self.address = Gateway(self, mesh, mesh_layer(self, mesh)).address
        CfnOutput(self, "GatewayUrl", value=self.address.url)
        CfnOutput(self, "GatewayApiId", value=self.address.api_id)
