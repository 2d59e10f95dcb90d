"""Pause actors such as x-pause, wait actors, and the sweep of pauses and waits (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.constructs.actors.system_actor import system_actor
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh


def pause_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a pause actor."""
    pause = mesh.table.actors[name].pause
    has_callbacks = pause is not None and pause.callback
    environment = {"ASYA_TOKEN_KEY": gateway.key_arn} if has_callbacks else {}
    return system_actor(scope, mesh, layer, gateway, name, environment=environment)


def pause_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that completes unfinished releases, sends what waited, and measures the oldest pauses."""
    settings = declared(mesh, names.PAUSE_SWEEP, code=mesh.table_code())
    add_sweep(Construct(scope, "PauseSweep"), mesh, layer, settings)
