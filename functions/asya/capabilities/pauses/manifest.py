"""Declares the functions of pauses and waits."""

from dataclasses import replace

from asya.capabilities.pauses import statements
from asya.capabilities.pauses.limits import longest_wait
from asya.manifest import CREW_TIMEOUT, ActorFunction, Capability, Clock, Function, Queues, crew_actor
from asya.monitoring import CREW, KINDS, NUMBERS, Alarm, Graph, Line, Metric, Of, Series, Threshold, lines
from asya.needs import OWN, Calls, Group, Items, Payloads, Resource, lists, reads, reads_and_writes, sends, writes
from asya.predicates import answers_by_link, holds_retries, only_waits, pauses_tasks, waits_on_routes, with_holders
from asya.protocol import names
from asya.protocol.keys import INBOX_PREFIX, PAUSES_PREFIX, WAITS_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya.protocol.table_keys import WAITING_INDEX
from asya.sidecar.needs import (
    CHECKS_KEYS,
    CLAIMS,
    CREW_SIDECAR,
    ENDS,
    GIVES_KEYS,
    READS_OWN_PAYLOADS,
    REPORTER,
    SIGNS_TOKENS,
)
from asya.stores import Prefix

_ITSELF = (OWN, names.SINK, names.SUMP)
_HELD = (*_ITSELF, Group.RETRYING)

FUNCTIONS = (
    ActorFunction(
        kind="pause",
        text="waits for an answer",
        entry_point="asya.capabilities.pauses.lambdas.wiring.pause",
        timeout=CREW_TIMEOUT,
        queues=Queues(),
        crew=(names.PAUSE,),
        hears=statements.PAUSE,
        # It stores envelopes, notes pauses beside the claims on ends, and publishes events. It sends only to the end actors and
        # to itself.
        needs=(
            *CREW_SIDECAR,
            CHECKS_KEYS,
            ENDS,
            sends(*_ITSELF),
            Payloads(to=_ITSELF),
            reads_and_writes(f"{PAUSES_PREFIX}*"),
            lists(f"{PAUSES_PREFIX}*"),
            CLAIMS,
            Calls(calls=("events:PutEvents",), on=Resource.EVENT_BUS),
            Calls(calls=("events:PutEvents",), on=Resource.LINK_BUS, when=answers_by_link),
            replace(SIGNS_TOKENS, when=answers_by_link),
        ),
    ),
    ActorFunction(
        kind="wait",
        text="waits for a time",
        passes_payloads=True,
        entry_point="asya.capabilities.pauses.lambdas.wiring.wait",
        timeout=CREW_TIMEOUT,
        queues=Queues(),
        # For retries that are due after more than a day.
        on_demand=(names.WAIT,),
        hears=statements.WAIT,
        # It holds envelopes, and sends them along their routes when they are due. If its wait stops the deadline, it pauses tasks
        # as a pause actor does, but without an event. x-wait sends to the actors whose retries it holds.
        needs=(
            *CREW_SIDECAR,
            CHECKS_KEYS,
            ENDS,
            sends(*_HELD, when=holds_retries),
            sends(Group.TARGETS, when=waits_on_routes),
            Payloads(to=_HELD, when=holds_retries),
            Payloads(to=(Group.TARGETS,), when=waits_on_routes),
            reads_and_writes(f"{PAUSES_PREFIX}*", when=pauses_tasks),
            reads_and_writes(f"{WAITS_PREFIX}*", when=only_waits),
            lists(f"{PAUSES_PREFIX}*", when=pauses_tasks),
            lists(f"{WAITS_PREFIX}*", when=only_waits),
            replace(CLAIMS, when=pauses_tasks),
        ),
    ),
    crew_actor(
        names.RESUME,
        "asya.capabilities.pauses.lambdas.wiring.resume",
        hears=statements.RESUME,
        # It sends a paused envelope along its route and writes a tombstone.
        needs=(
            *REPORTER,
            CHECKS_KEYS,
            sends(Group.TARGETS),
            *READS_OWN_PAYLOADS,
            Payloads(),
            reads_and_writes(f"{PAUSES_PREFIX}*"),
            lists(f"{PAUSES_PREFIX}*"),
        ),
    ),
    Function(
        name=names.PAUSE_SWEEP,
        entry_point="asya.capabilities.pauses.lambdas.wiring.sweep",
        called_by=Clock(
            minutes=1,
            checks="the paused tasks",
            without="an unfinished resume is not repeated, and what waits for a time stays",
        ),
        timeout=CREW_TIMEOUT,
        exists=with_holders,
        # It finds pauses with an unfinished release and sends it in place of the gateway, and sends what waited. An earlier
        # deployment may have held envelopes for actors that no longer wait, or are gone. So it may send to every actor, and read
        # what waited, also in a mesh that only pauses.
        needs=(
            Items(table="tasks", calls=("Query",), indexes=(WAITING_INDEX,)),
            Items(table="tasks", calls=("BatchGetItem", "PutItem", "Query")),
            sends(Group.EVERY_ACTOR),
            GIVES_KEYS,
            reads(f"{PAUSES_PREFIX}*"),
            reads_and_writes(f"{WAITS_PREFIX}*"),
            writes(f"{INBOX_PREFIX}*"),
            lists(f"{PAUSES_PREFIX}*", f"{WAITS_PREFIX}*"),
        ),
    ),
)

METRICS = (Metric("PausesOpen"), Metric("PausedAge", "Seconds"), Metric("WaitsLate", "Seconds"))


def most_of_the_longest_pause(mesh: MeshTable) -> float:
    """Three quarters of the longest pause: somebody must have time to answer."""
    return 0.75 * longest_wait(mesh.retention).total_seconds()


ALARMS = (
    Alarm(
        name="oldest-pause",
        says="A task has waited long for an answer, and will fail without one.",
        graph="Oldest pause (s)",
        step="`asya list --status paused`, then [answer or cancel](../how-to/pause-and-resume.md#limits)",
        watched=Series(metric="PausedAge", statistic="Maximum"),
        threshold=Threshold(
            key="oldest_pause",
            form="age",
            default=21 * 86_400,
            text="The age of the oldest pause; at most three quarters of the longest pause.",
        ),
        at_most=most_of_the_longest_pause,
    ),
)

GRAPHS = (
    Graph(
        section=NUMBERS,
        at=3,
        title="Open pauses",
        number="latest",
        lines=(Line(metric="PausesOpen", statistic="Maximum", of=Of.ACTORS, drawn="SUM", label="pauses", period=60),),
    ),
    Graph(section=CREW, at=6, title="Oldest pause (s)", lines=lines("PausedAge", of=Of.ACTORS, statistic="Maximum")),
    Graph(
        section=KINDS,
        at=7,
        title="Open sets and open pauses",
        lines=lines("FanInOpen", "PausesOpen", of=Of.PICKED, statistic="Maximum"),
    ),
    Graph(section=KINDS, at=8, title="Oldest pause (s)", lines=lines("PausedAge", of=Of.PICKED, statistic="Maximum")),
    Graph(
        section=KINDS, at=12, title="Lateness of waits (s)", lines=lines("WaitsLate", of=Of.PICKED, statistic="Maximum")
    ),
)

PREFIXES = (
    Prefix(name=PAUSES_PREFIX, holds="Paused envelopes", kept="payloads"),
    Prefix(name=WAITS_PREFIX, holds="Envelopes that wait for a time", kept="payloads"),
)

CAPABILITY = Capability(
    name="pause", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS, prefixes=PREFIXES
)
