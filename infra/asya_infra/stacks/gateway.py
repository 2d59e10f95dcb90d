"""The HTTP APIs, the functions behind them, and the sweep of their tasks."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.gateway.deadline_sweep import DeadlineSweep
from asya_infra.constructs.gateway.gateway import Gateway
from asya_infra.constructs.layer import mesh_layer
from asya_infra.mesh import Mesh


class GatewayStack(Stack):
    """The gateway; `address` is for the functions that report to it."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, names.stack_name(mesh.namespace, "gateway"))
        layer = mesh_layer(self, mesh)
        gateway = Gateway(self, mesh, layer)
        self.address = gateway.address
        DeadlineSweep(self, mesh, layer)
        CfnOutput(self, "GatewayUrl", value=self.address.url)
        CfnOutput(self, "GatewayApiId", value=gateway.api_id)
        if gateway.live is not None:
            CfnOutput(self, "StreamUrl", value=gateway.live.url)
        if gateway.token_api is not None:
            CfnOutput(self, "JwtGatewayUrl", value=gateway.token_api.api_endpoint)
            CfnOutput(self, "JwtGatewayApiId", value=gateway.token_api.api_id)
