"""All stacks of a mesh and their order. Most resources refer to each other by computed names, not by exports."""

from aws_cdk import App, Tags

from asya.protocol import names
from asya_infra.constructs.listed_roles import ListedRoles
from asya_infra.constructs.trigger_sources import needs_queue_first
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors
from asya_infra.placement import CREW_SHARD, SHARDS, shard_of
from asya_infra.stacks.functions import FunctionsStack
from asya_infra.stacks.gateway import GatewayStack
from asya_infra.stacks.observability import AlarmsStack, DashboardsStack
from asya_infra.stacks.queues import QueuesStack
from asya_infra.stacks.spark import SparkStack
from asya_infra.stacks.state import StateStack


def add_stacks(app: App, mesh: Mesh) -> None:
    """Add the stacks of a mesh: state and queues first, then the gateway, then the functions.

    A shard without actors has its stacks too. Otherwise the stacks of a shard that has lost its last actor would stay deployed:
    their functions would consume with an old actor table and block the deletion of the gateway.
    """
    shards = _actors_by_shard(mesh)
    spark = SparkStack(app, mesh) if heavy_actors(mesh.table) and not mesh.existing_application else None
    state = StateStack(app, mesh)
    gateway = GatewayStack(app, mesh)
    gateway.add_stack_dependency(state)
    # Alarms need metric math, which the local cloud refuses; no alarm has data there.
    observability = [
        DashboardsStack(app, mesh),
        *([AlarmsStack(app, mesh)] if mesh.options.layer_target == "lambda" else []),
    ]
    stacks: dict[int, FunctionsStack] = {}
    queue_stacks = {shard: QueuesStack(app, mesh, shard, actors) for shard, actors in sorted(shards.items())}
    if needs_queue_first(mesh):
        state.add_stack_dependency(queue_stacks[CREW_SHARD])
    for shard, actors in sorted(shards.items()):
        functions = FunctionsStack(app, mesh, gateway.address, shard, actors, task_changes=state.task_changes)
        stacks[shard] = functions
        # The functions of every shard report to queues of the crew's shard.
        for dependency in dict.fromkeys((state, queue_stacks[shard], queue_stacks[CREW_SHARD], gateway)):
            functions.add_stack_dependency(dependency)
        if shard == CREW_SHARD:
            # Sweeps run before the alarms on their heartbeats exist.
            for each in observability:
                each.add_stack_dependency(functions)
        if spark is not None and shard == CREW_SHARD:
            functions.add_stack_dependency(spark)
    for shard in shards:
        # The dispatcher names the job roles of heavy actors, so they exist before it is deployed. And the list of roles is
        # complete with the crew's stack.
        if shard != CREW_SHARD:
            stacks[CREW_SHARD].add_stack_dependency(stacks[shard])
    ListedRoles.of(stacks[CREW_SHARD], mesh).complete()
    for key, value in mesh.tags.items():
        Tags.of(app).add(key, value)


def _actors_by_shard(mesh: Mesh) -> dict[int, list[str]]:
    shards: dict[int, list[str]] = {CREW_SHARD: []}
    if mesh.options.layer_target == "lambda":
        # The local cloud saves the time to deploy empty stacks.
        shards.update({shard: [] for shard in range(SHARDS)})
    for name in sorted(mesh.file.actors):
        # Crew actors stay in the crew's shard even if the mesh file redefines them: queues never move.
        if not names.is_reserved(name):
            shards.setdefault(shard_of(name), []).append(name)
    return shards
