"""The manifests of all capabilities. Synthesis, tools and local modes read it, and no function does."""

from asya.crew.manifest import FUNCTIONS as _CREW
from asya.dead_letters.manifest import FUNCTIONS as _DEAD_LETTERS
from asya.fan_in.manifest import FUNCTIONS as _FAN_IN
from asya.gateway.manifest import FUNCTIONS as _GATEWAY
from asya.manifest import ActorFunction, Function, Queues, Schedule
from asya.pause.manifest import FUNCTIONS as _PAUSE
from asya.predicates import is_actor
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.manifest import FUNCTIONS as _SIDECAR
from asya.spark.manifest import FUNCTIONS as _SPARK
from asya.triggers.manifest import FUNCTIONS as _TRIGGERS

_DECLARED: tuple[Function | ActorFunction, ...] = (
    *(*_GATEWAY, *_SIDECAR, *_CREW, *_PAUSE, *_FAN_IN, *_DEAD_LETTERS, *_SPARK, *_TRIGGERS),
)
FUNCTIONS = {each.name: each for each in _DECLARED if isinstance(each, Function)}
"""The functions of the mesh's own by name."""
ACTOR_FUNCTIONS = {each.kind: each for each in _DECLARED if isinstance(each, ActorFunction)}
"""The functions of actors by kind."""
CREW = tuple(name for name, each in FUNCTIONS.items() if each.exists is is_actor)
"""The actors of the crew with functions of their own."""
CREW_OF_KINDS = {name: each.kind for each in ACTOR_FUNCTIONS.values() for name in each.crew}
"""The other actors that every mesh has, with their kinds."""
ON_DEMAND = {name: each.kind for each in ACTOR_FUNCTIONS.values() for name in each.on_demand}
"""The actors that a mesh gets when it needs them, with their kinds."""
OWN_QUEUES = (
    *(*CREW, *CREW_OF_KINDS, *ON_DEMAND),
    *(
        queue
        for name, each in FUNCTIONS.items()
        if each.queues is not None and name not in CREW
        for queue in each.queues.names or (name,)
    ),
)
"""The queues that meshes bring along: those of the crew and of the mesh's own functions."""


def functions_of(mesh: MeshTable) -> list[Function]:
    """Return the mesh's own functions."""
    return [each for each in FUNCTIONS.values() if each.exists(mesh, each.name)]


def sweeps_of(mesh: MeshTable) -> dict[str, Schedule]:
    """Return the schedules of the functions that sweep the mesh, in the order in which one process runs them."""
    return {each.name: each.called_by for each in functions_of(mesh) if isinstance(each.called_by, Schedule)}


def queues_of(mesh: MeshTable) -> dict[str, tuple[Function, Queues]]:
    """Return the consumer of each queue that belongs to no actor, by the name of the queue."""
    return {
        queue: (each, each.called_by)
        for each in functions_of(mesh)
        if isinstance(each.called_by, Queues) and each.name not in mesh.actors
        for queue in each.called_by.names or (each.name,)
    }


def crew_of(mesh: MeshTable) -> list[str]:
    """Return the actors that this mesh brings along."""
    return [name for name in (*CREW_OF_KINDS, *CREW, *ON_DEMAND) if name in mesh.actors]


def consumer_of(queue: str, mesh: MeshTable) -> Function | ActorFunction:
    """Return the function that a queue of this mesh calls."""
    return function_of(queue, mesh) if queue in mesh.actors else queues_of(mesh)[queue][0]


def function_of(actor: str, mesh: MeshTable) -> Function | ActorFunction:
    """Return the function of an actor, or that of the mesh's own with this name."""
    return FUNCTIONS.get(actor) or ACTOR_FUNCTIONS[mesh.actors[actor].kind]
