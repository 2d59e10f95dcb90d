"""A deployment of another version of the mesh, while envelopes of the first one are in flight."""

from dataclasses import dataclass, replace
from random import Random

from msgspec import structs

from asya.protocol.mesh_table import Actor
from asya.testing.services.gateway import started
from tests.simulation.checks.calls import CallChecks
from tests.simulation.cloud import Cloud
from tests.simulation.inputs.handlers import handler_name, replace_handler
from tests.simulation.inputs.programs import Program, handler_of

# The actor that the second version adds.
ADDED = "later"
VERSION = "+2"
# Seconds between two functions.
PACE = 3.0


@dataclass
class Deployment:
    """Replaces the functions of a mesh one by one: an actor is added, one is removed, and a handler changes.

    The removed actor leaves the table. Its queue and its function stay, as long as envelopes may be on their way to it.
    """

    cloud: Cloud
    random: Random

    def __post_init__(self) -> None:
        """Draw the second version, and tell the checks which actors only one version has."""
        light = [name for name in self.cloud.mesh.light_actors if self.cloud.mesh.table.actors[name].kind == "handler"]
        self._changed = self.random.choice(light)
        # The workload starts tasks at the first actor, so it stays.
        self._removed = frozenset(self.random.sample(light[1:], k=min(1, len(light) - 1)))
        first = self.cloud.mesh.table
        added = {ADDED: Actor(kind="handler", handler=handler_name(ADDED), timeout=5.0)}
        kept = {name: actor for name, actor in first.actors.items() if name not in self._removed}
        self.table = structs.replace(first, actors=kept | added)
        ledger = self.cloud.ledger
        ledger.volatile_actors = self._removed | {ADDED}
        ledger.runs.has_versions = True
        ledger.mesh.actors.update(added)

    def roll_out(self) -> None:
        """Replace all functions, in random order; processes with an invocation finish it."""
        self._add_actor()
        functions = list(self.cloud.sources.functions.values())
        self.random.shuffle(functions)
        for function in functions:
            self._wait()
            if function.actor in self._removed:
                continue
            if function.actor == self._changed:
                self._replace_handler(self.cloud.mesh.programs[function.actor])
            function.replace(self.cloud.settings(function.actor, self.table))
            self.cloud.simulation.log.note(self.cloud.simulation.scheduler.seconds, "deployment", function.actor)
        self._wait()
        self.cloud.api.replace(started(self.cloud.settings("x-gateway-api", self.table, is_gateway=True)))

    def _add_actor(self) -> None:
        program = Program(ADDED, self.random.getrandbits(32), "generator", ("fan", "fail"), (ADDED,), 5.0)
        replace_handler(ADDED, handler_of(program, CallChecks(self.cloud.ledger)))
        self.cloud.add_actor(ADDED, self.table)

    def _replace_handler(self, program: Program) -> None:
        repertoire = tuple(behavior for behavior in program.repertoire if behavior != "poison")
        actors = (*(name for name in program.actors if name not in self._removed), ADDED)
        changed = replace(
            program, seed=self.random.getrandbits(32), repertoire=repertoire, actors=actors, version=VERSION
        )
        replace_handler(program.actor, handler_of(changed, CallChecks(self.cloud.ledger)))

    def _wait(self) -> None:
        self.cloud.simulation.scheduler.wait(self.random.uniform(0.0, PACE))
