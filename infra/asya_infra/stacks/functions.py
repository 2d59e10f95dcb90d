"""The stack with the functions of one shard of the actors."""

from collections.abc import Iterable

from aws_cdk import CfnWaitConditionHandle
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.protocol import names
from asya_infra.constructs.actors.heavy_actor import heavy_actor
from asya_infra.constructs.actors.light_actor import light_actor
from asya_infra.constructs.actors.system_actor import system_actor
from asya_infra.constructs.crew.crew import crew
from asya_infra.constructs.crew.dead_letters import dead_letter_sweep
from asya_infra.constructs.crew.fan_in import fan_in_sweep
from asya_infra.constructs.crew.pause_notifications import PauseNotifications
from asya_infra.constructs.crew.pauses import pause_actor, pause_sweep
from asya_infra.constructs.crew.result_index import result_index_schedule
from asya_infra.constructs.function import MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.gateway.push_notifications import PushNotifications
from asya_infra.constructs.gateway.report_queues import report_queues
from asya_infra.constructs.layer import mesh_layer
from asya_infra.constructs.own_functions import own_functions
from asya_infra.constructs.spark.runs import Spark
from asya_infra.constructs.triggers import triggers
from asya_infra.contracts.template_record import ACTOR, actor_records
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors
from asya_infra.placement import CREW_SHARD
from asya_infra.stacks.base import MeshStack

_MORE_THAN_A_FUNCTION = {"spark": heavy_actor, "pause": pause_actor}


class FunctionsStack(MeshStack):
    """A function for each of these actors. The stack of the crew's shard also has the mesh's own functions."""

    def __init__(
        self,
        scope: Construct,
        mesh: Mesh,
        gateway: GatewayAddress,
        shard: int,
        actors: Iterable[str],
        *,
        task_changes: str,
    ) -> None:
        super().__init__(scope, mesh, f"functions-{shard}")
        shard_actors = list(actors)
        if not shard_actors and shard != CREW_SHARD:
            # A template needs a resource.
            CfnWaitConditionHandle(self, "NoActors")
            return
        layer = mesh_layer(self, mesh)
        records = actor_records(mesh.contracts, shard_actors) if mesh.records_contracts else {}
        for name in shard_actors:
            function = _add_actor(self, mesh, layer, gateway, name)
            if name in records:
                function.record(ACTOR, records[name])
        if shard == CREW_SHARD:
            crew(self, mesh, layer, gateway)
            system_actor(self, mesh, layer, gateway, names.FAN_IN)
            fan_in_sweep(self, mesh, layer)
            pause_actor(self, mesh, layer, gateway, names.PAUSE)
            pause_sweep(self, mesh, layer)
            PauseNotifications(self, mesh)
            if mesh.table.tools:
                PushNotifications(self, mesh, layer, task_changes)
            dead_letter_sweep(self, mesh, layer, gateway)
            report_queues(self, mesh, layer, gateway)
            own_functions(self, mesh, layer, gateway)
            if mesh.table.triggers:
                triggers(self, mesh, layer, gateway)
            if heavy_actors(mesh.table):
                Spark(self, mesh, layer, gateway)
            if names.WAIT in mesh.table.actors:
                system_actor(self, mesh, layer, gateway, names.WAIT)
            if names.INDEX in mesh.table.actors:
                heavy_actor(self, mesh, layer, gateway, names.INDEX)
                result_index_schedule(self, mesh)


def _add_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add the function of an actor, as its kind declares it."""
    kind = mesh.table.actors[name].kind
    if kind in _MORE_THAN_A_FUNCTION:
        return _MORE_THAN_A_FUNCTION[kind](scope, mesh, layer, gateway, name)
    has_handler = registry.of(mesh.table).actor_functions[kind].queues is None
    return (light_actor if has_handler else system_actor)(scope, mesh, layer, gateway, name)
