"""Pause actors, x-pause above all, and the sweep that finishes what a resume began (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import derived
from asya_infra.constructs.function import FeedSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.schedule import woken
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions import pauses

_SWEEP = "rate(1 minute)"


def pause_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """The function of a pause actor, fed by its queue. It runs no user code."""
    section = section_of(mesh.file, name)
    function = MeshFunction(
        scope,
        mesh,
        layer,
        FunctionSettings(
            name=name,
            handler="asya.pause.lambdas.wiring.pause",
            code=mesh.table_only(),
            grants=pauses.pause(mesh.addresses, name, gateway.api_id),
            timeout=derived.PAUSE_TIMEOUT,
            memory=section.memory,
            environment={"ASYA_GATEWAY_URL": gateway.url},
            in_routes=True,
        ),
    )
    function.fed_by_queue(FeedSettings(concurrency=section.concurrency, provisioned=section.provisioned))
    return function


class PauseSweep(Construct):
    """Every minute: handovers that were not finished, and how old the oldest pauses are."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "PauseSweep")
        settings = FunctionSettings(
            name=names.PAUSE_SWEEP,
            handler="asya.pause.lambdas.wiring.sweep",
            code=mesh.table_only(),
            grants=pauses.sweep(mesh.addresses),
            timeout=derived.PAUSE_TIMEOUT,
        )
        function = MeshFunction(self, mesh, layer, settings).function
        woken(self, mesh, function, name="pause-sweep", every=_SWEEP, why="the paused tasks")
