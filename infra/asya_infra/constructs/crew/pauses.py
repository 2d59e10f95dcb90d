"""Pause actors such as x-pause, wait actors, and the sweep of pauses and waits (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.actors.system_actor import system_actor
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.permissions import common, pauses

_SCHEDULE = "rate(1 minute)"


def pause_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a pause actor."""
    pause = mesh.table.actors[name].pause
    has_callbacks = pause is not None and pause.callback
    return system_actor(
        scope,
        mesh,
        layer,
        gateway,
        name,
        handler="asya.pause.lambdas.wiring.pause",
        grants=[
            *pauses.pause(mesh.addresses, name),
            *([common.sign_tokens(gateway.key_arn)] if has_callbacks else []),
        ],
        timeout=timings.PAUSE_TIMEOUT,
        environment={"ASYA_TOKEN_KEY": gateway.key_arn} if has_callbacks else {},
    )


def wait_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a wait actor."""
    return system_actor(
        scope,
        mesh,
        layer,
        gateway,
        name,
        handler="asya.pause.lambdas.wiring.wait",
        grants=pauses.wait(mesh.addresses, mesh.table, name),
        timeout=timings.PAUSE_TIMEOUT,
    )


def pause_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
    """Add the function that completes unfinished releases, sends what waited, and measures the oldest pauses."""
    settings = FunctionSettings(
        name=names.PAUSE_SWEEP,
        handler="asya.pause.lambdas.wiring.sweep",
        code=mesh.table_code(),
        grants=pauses.sweep(mesh.addresses, mesh.table),
        timeout=timings.PAUSE_TIMEOUT,
    )
    sweep = Construct(scope, "PauseSweep")
    add_sweep(sweep, mesh, layer, settings, rule="pause-sweep", schedule=_SCHEDULE, subject="the paused tasks")
