"""Declares what functions need that take envelopes from queues: senders, starts, payloads, and the claims on ends."""

from asya.needs import (
    OWN,
    OWN_DEAD_LETTERS,
    Items,
    Need,
    lists,
    reads,
    reads_and_writes,
    sends,
)
from asya.protocol import names
from asya.protocol.keys import BUFFERED_PREFIX, INBOX_PREFIX, PAYLOADS_PREFIX
from asya.protocol.table_keys import (
    KEY_PREFIX,
    LETTER_PREFIX,
    OUTAGE_KEY,
    OWNER_PREFIX,
    ROLE_PREFIX,
    SPECIAL_KEYS,
    STATE_ATTRIBUTES,
    TOKENS_KEY,
    own_letters,
    own_starts,
)

_OWN_MARKS = (OUTAGE_KEY, f"{own_starts(OWN)}*")


def _judge(*written: str) -> tuple[Need, ...]:
    """Judging the senders of envelopes (`protocol §4.entry`): it reads roles and first senders, and claims ids for owners."""
    return (
        Items(table="sink", calls=("GetItem",), keys=(OUTAGE_KEY, f"{ROLE_PREFIX}*", f"{LETTER_PREFIX}*")),
        Items(table="sink", calls=("UpdateItem",), keys=(*written, f"{OWNER_PREFIX}*")),
    )


REPORTS = sends(names.REPORTS)
"""Reports of hops."""
ENDS = sends(names.ENDS)
"""Reports of ends, which change the outcome of any task: for the crew only, never for a role with user code."""
GIVES_UP = sends(OWN_DEAD_LETTERS)
"""A function puts a message of its own queue into its dead-letter queue."""
READS_OUTAGES = Items(table="sink", calls=("GetItem",), keys=(OUTAGE_KEY,))
"""The notes of outages, for the errors that name them."""
READS_ROLES = Items(table="sink", calls=("GetItem",), keys=(f"{ROLE_PREFIX}*",))
"""Which roles are those of the mesh."""
READS_STATES = Items(table="tasks", calls=("BatchGetItem",), attributes=STATE_ATTRIBUTES)
"""The read of a pre-flight: the states of tasks, and no other attribute of their records."""

CLAIMS = Items(table="sink", calls=("UpdateItem",), except_keys=SPECIAL_KEYS)
"""Claiming the ends of envelopes, and noting their pauses. Nobody may replace or delete a claim, nor change the list of roles."""
READS_CLAIMS = Items(table="sink", calls=("GetItem",), except_keys=(f"{KEY_PREFIX}*",))
"""Reading the claim on an end again, after its object is written (`protocol §11`)."""

GIVES_KEYS = Items(table="sink", calls=("GetItem",), keys=(KEY_PREFIX,))
"""A function without code of users gives keys to what it sends (`protocol §4.keys`)."""
CHECKS_KEYS = Items(table="sink", calls=("GetItem",), keys=(KEY_PREFIX, f"{OWNER_PREFIX}*"))
"""It also checks the keys of what it takes, and where a message has entered."""
ENTERS_TASKS = Items(table="sink", calls=("GetItem",), keys=(f"{KEY_PREFIX}{OWN}",))
"""A function with code of users vouches for the messages that enter at it."""
SIGNS_TOKENS = Items(table="sink", calls=("GetItem",), keys=(TOKENS_KEY,))
"""A function makes or checks stream tokens, or links that answer pauses (`protocol §13.stream-token`)."""
JUDGES_SENDERS = _judge()
ADMITS = (*_judge(*_OWN_MARKS), GIVES_UP)
"""Taking envelopes: judging their senders, and counting the starts of those that come again."""
NOTES_LETTERS = Items(table="sink", calls=("PutItem",), keys=(f"{own_letters(OWN)}*",))
"""Noting who has sent the messages of the own queue (`protocol §4.entry.moved.unseen`)."""
COUNTS_STARTS = (READS_OUTAGES, Items(table="sink", calls=("UpdateItem",), keys=_OWN_MARKS), GIVES_UP)
"""A system function counts the starts of its messages (`protocol §4.starts`), and notes outages."""

READS_OWN_PAYLOADS = (
    reads(f"{PAYLOADS_PREFIX}{OWN}/*", f"{INBOX_PREFIX}{OWN}/*"),
    lists(f"{PAYLOADS_PREFIX}{OWN}/*", f"{INBOX_PREFIX}{OWN}/*"),
)
"""The payloads of messages for one actor."""
READS_ALL_PAYLOADS = (
    reads(f"{PAYLOADS_PREFIX}*", f"{INBOX_PREFIX}*"),
    lists(f"{PAYLOADS_PREFIX}*", f"{INBOX_PREFIX}*"),
)
"""The payloads of all messages: for those who get references that other actors received."""
BUFFERS_FRAMES = (
    reads_and_writes(f"{BUFFERED_PREFIX}{OWN}/*"),
    lists(f"{BUFFERED_PREFIX}{OWN}/*"),
)
"""The buffered frames of an actor's own hops."""

REPORTER = (REPORTS, *ADMITS, NOTES_LETTERS)
"""A function that takes envelopes from its queue and reports on them."""
CREW_SIDECAR = (*REPORTER, *READS_OWN_PAYLOADS, READS_STATES)
"""A function that also reads payloads, and asks for the states of tasks."""
SIDECAR = (*CREW_SIDECAR, ENTERS_TASKS)
"""Such a function with code of users."""
