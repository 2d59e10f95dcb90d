"""Declares the function of dead letters."""

from asya.manifest import Capability, Clock, Function
from asya.monitoring import ACTORS, CREW, KINDS, Alarm, Graph, Line, Metric, Of, Series, Threshold, lines
from asya.needs import Group, Items, looks_at, sends, writes
from asya.protocol import names
from asya.protocol.keys import DEAD_LETTERS_PREFIX
from asya.protocol.table_keys import LETTER_PREFIX, REPORTED_PREFIX
from asya.sidecar.needs import CHECKS_KEYS, CLAIMS, ENDS, JUDGES_SENDERS, REPORTS
from asya.stores import Prefix

FUNCTIONS = (
    Function(
        name=names.DLQ,
        entry_point="asya.capabilities.dead_letters.lambdas.dlq.dlq",
        # An alarm of each queue would cost $0.10, fire for the first message only, and come no sooner.
        called_by=Clock(minutes=1, checks="the dead letters", without="dead letters are not reported"),
        timeout=120,
        # It receives from every dead-letter queue with envelopes, and cannot delete a message. Operators alone reach those of
        # reports.
        needs=(
            looks_at(Group.DEAD_LETTERS),
            REPORTS,
            ENDS,
            sends(Group.FAN_IN),
            writes(f"{DEAD_LETTERS_PREFIX}*"),
            Items(table="tasks", calls=("Query",)),
            # Like the end actors, it claims the end of an envelope: the first claim counts.
            CLAIMS,
            # The claims themselves it can neither read nor overwrite.
            Items(table="sink", calls=("BatchGetItem", "PutItem"), keys=(f"{REPORTED_PREFIX}*", f"{LETTER_PREFIX}*")),
            *JUDGES_SENDERS,
            CHECKS_KEYS,
        ),
    ),
)

METRICS = (Metric("DeadLetters"),)

LETTERS = Threshold(key="dead_letters", text="Messages in a dead-letter queue.")

ALARMS = (
    Alarm(
        name="dead-letters",
        says="Messages could not be delivered: `asya dlq list` shows them.",
        graph="Dead letters by actor",
        step="[Redrive them](../how-to/operate.md#redrive-dead-letters); the alarm goes off when the queues are empty",
        watched=Series(metric="DeadLetters", statistic="Maximum"),
        threshold=LETTERS,
        # A sweep may fail; of two periods, one has a value.
        periods=(2, 1),
    ),
)

GRAPHS = (
    Graph(
        section=ACTORS,
        at=2,
        title="Dead letters by actor",
        lines=(Line(metric="DeadLetters", statistic="Maximum", of=Of.OWN_ACTORS, drawn="top"),),
    ),
    Graph(
        section=CREW,
        at=3,
        title="Dead letters of the crew",
        lines=lines("DeadLetters", of=Of.CREW, statistic="Maximum"),
    ),
    Graph(section=KINDS, at=6, title="Dead letters", lines=lines("DeadLetters", of=Of.PICKED, statistic="Maximum")),
)

PREFIXES = (Prefix(name=DEAD_LETTERS_PREFIX, holds="Copies of dead letters", kept="payloads"),)

CAPABILITY = Capability(
    name="dead_letters", functions=FUNCTIONS, metrics=METRICS, alarms=ALARMS, graphs=GRAPHS, prefixes=PREFIXES
)
