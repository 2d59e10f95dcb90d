"""Declares the functions of fan-in."""

from asya.capabilities.fan_in import statements
from asya.manifest import CREW_TIMEOUT, ActorFunction, Capability, Clock, Function, Queues
from asya.monitoring import CREW, Graph, Metric, Of, lines
from asya.needs import Group, Items, Payloads, lists, reads, reads_and_writes, sends, writes
from asya.predicates import with_fan_in
from asya.protocol import names
from asya.protocol.keys import BUFFERED_PREFIX, SLICES_PREFIX, SUPERSEDED_PREFIX
from asya.protocol.table_keys import OPEN_INDEX
from asya.sidecar.needs import BUFFERS_FRAMES, CHECKS_KEYS, CLAIMS, CREW_SIDECAR, ENDS
from asya.stores import Index, Prefix, Table

FUNCTIONS = (
    ActorFunction(
        kind="fan_in",
        text="merges slices",
        entry_point="asya.capabilities.fan_in.lambdas.wiring.fan_in",
        timeout=CREW_TIMEOUT,
        queues=Queues(),
        crew=(names.FAN_IN,),
        hears=statements.FAN_IN,
        # It stores slices, claims their ends, and sends the merged envelope along the origin's route.
        needs=(
            *CREW_SIDECAR,
            CHECKS_KEYS,
            ENDS,
            sends(Group.TARGETS),
            Payloads(),
            *BUFFERS_FRAMES,
            # It repeats a fan-out from the frames of the actor that fanned out.
            reads(f"{BUFFERED_PREFIX}*"),
            reads_and_writes(f"{SLICES_PREFIX}*"),
            lists(f"{BUFFERED_PREFIX}*", f"{SLICES_PREFIX}*"),
            Items(table="fan-in", calls=("GetItem", "PutItem", "Query", "UpdateItem")),
            CLAIMS,
            # Ends that do not count.
            writes(f"{SUPERSEDED_PREFIX}*", store="results"),
        ),
    ),
    Function(
        name=names.FAN_IN_SWEEP,
        entry_point="asya.capabilities.fan_in.lambdas.wiring.sweep",
        called_by=Clock(minutes=5, checks="the open sets of slices", without="overdue sets may stay open"),
        timeout=60,
        exists=with_fan_in,
        # It reads the open sets and sends checks to their fan-in actors.
        needs=(sends(Group.FAN_IN), Items(table="fan-in", calls=("Query",), indexes=(OPEN_INDEX,))),
    ),
)

METRICS = (Metric("FanInOpen"),)

GRAPHS = (Graph(section=CREW, at=5, title="Open sets", lines=lines("FanInOpen", of=Of.ACTORS, statistic="Maximum")),)

TABLES = (
    Table(
        name="fan-in",
        holds="Sets of slices",
        # Open sets, for the sweep.
        indexes=(Index(name=OPEN_INDEX, partition="open_in", sort="due_at", included=("actor",)),),
    ),
)

PREFIXES = (Prefix(name=SLICES_PREFIX, holds="Large slices", kept="payloads"),)

CAPABILITY = Capability(
    name="fan_in", functions=FUNCTIONS, metrics=METRICS, graphs=GRAPHS, tables=TABLES, prefixes=PREFIXES
)
