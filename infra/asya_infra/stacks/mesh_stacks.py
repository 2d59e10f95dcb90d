"""All stacks of a mesh and their order. Names are computed, so order is all that ties most of them together."""

from collections import defaultdict

from aws_cdk import App, Tags

from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.placement import CREW_SHARD, shard_of
from asya_infra.stacks.functions import FunctionsStack
from asya_infra.stacks.gateway import GatewayStack
from asya_infra.stacks.queues import QueuesStack
from asya_infra.stacks.state import StateStack


def make_stacks(app: App, mesh: Mesh) -> None:
    """State and queues first, then the gateway, then the functions; a shard without actors yields no stack."""
    shards: dict[int, list[str]] = defaultdict(list)
    shards[CREW_SHARD] = []
    for name in sorted(mesh.file.actors):
        # An actor of the mesh's own stays with the crew, also where the file sets it up differently: queues never move.
        if not names.is_reserved(name):
            shards[shard_of(name)].append(name)
    state = StateStack(app, mesh)
    gateway = GatewayStack(app, mesh)
    gateway.add_stack_dependency(state)
    for shard, actors in sorted(shards.items()):
        queues = QueuesStack(app, mesh, shard, actors)
        functions = FunctionsStack(app, mesh, gateway.address, shard, actors, task_changes=state.task_changes)
        for before in (state, queues, gateway):
            functions.add_stack_dependency(before)
    for key, value in {"asya:namespace": mesh.namespace, **mesh.file.tags}.items():
        Tags.of(app).add(key, value)
