"""Fan-in actors, x-fan-in above all, and the sweep that looks after sets nobody looks after (`protocol §9`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import derived
from asya_infra.constructs.function import FeedSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.schedule import woken
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions import sets

_SWEEP = "rate(5 minutes)"


def fan_in_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """The function of a fan-in actor, fed by its queue. It runs no user code."""
    section = section_of(mesh.file, name)
    function = MeshFunction(
        scope,
        mesh,
        layer,
        FunctionSettings(
            name=name,
            handler="asya.fan_in.lambdas.wiring.fan_in",
            code=mesh.table_only(),
            grants=sets.fan_in(mesh.addresses, mesh.table, name, gateway.api_id),
            timeout=derived.FAN_IN_TIMEOUT,
            memory=section.memory,
            environment={"ASYA_GATEWAY_URL": gateway.url},
            # Nested sets come back to it, and it looks at the clock by sending to itself.
            in_routes=True,
        ),
    )
    function.fed_by_queue(FeedSettings(concurrency=section.concurrency, provisioned=section.provisioned))
    return function


class FanInSweep(Construct):
    """Every few minutes: sets past their time, and how many are open."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "FanInSweep")
        settings = FunctionSettings(
            name=names.FAN_IN_SWEEP,
            handler="asya.fan_in.lambdas.wiring.sweep",
            code=mesh.table_only(),
            grants=sets.sweep(mesh.addresses, mesh.table),
            timeout=derived.FAN_IN_TIMEOUT,
        )
        function = MeshFunction(self, mesh, layer, settings).function
        woken(self, mesh, function, name="fan-in-sweep", every=_SWEEP, why="the open sets of slices")
