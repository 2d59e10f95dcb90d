"""What permissions name in the tables of a mesh: beginnings of keys, indexes, and attributes that some roles alone may read.

Everything else of an item belongs to the module that writes it.
"""

ROLE_PREFIX = "ROLE#"
"""The roles of the mesh, by their ids."""
LETTER_PREFIX = "LETTER#"
"""Who has sent a message that became a dead letter, or may become one."""
OWNER_PREFIX = "OWNER#"
"""Who owns an id that a sender outside has chosen."""
START_PREFIX = "START#"
"""Starts of the work on a message, by the function."""
OUTAGE_KEY = "OUTAGE"
"""The outages of the services of AWS."""
KEY_PREFIX = "KEY#"
"""The secret of the mesh, and behind the prefix that of an actor, which vouches for what enters there."""
TOKENS_KEY = f"{KEY_PREFIX}x-tokens"
"""The secret that signs stream tokens and links. No actor has this name."""
REPORTED_PREFIX = "DLQ#"
"""The dead letters that are reported."""
SHARE_PREFIX = "PUSH#"
"""The time that notifications of an owner, or to a host, have taken."""
SPECIAL_KEYS = (
    f"{ROLE_PREFIX}*",
    f"{LETTER_PREFIX}*",
    f"{OWNER_PREFIX}*",
    f"{START_PREFIX}*",
    f"{KEY_PREFIX}*",
    f"{REPORTED_PREFIX}*",
    OUTAGE_KEY,
)
"""The keys of the table of claims that are no claims. Who claims ends may not touch them."""

LISTED_INDEX, CHILDREN_INDEX, DUE_INDEX = "listed", "children", "due"
"""Indexes of tasks, which `asya.tasks.aws.index` describes."""
WAITING_INDEX = "waiting"
"""The index of tasks that are paused or wait, and of lanes with something to do."""
OPEN_INDEX = "open"
"""The index of open sets of slices."""

EXPIRY = "expires_at"
"""The attribute with the time to live, in every table."""

STATE_ATTRIBUTES = ("pk", "sk", "status", "generation", "pause_epoch", "resumed_epoch", EXPIRY)
"""The attributes of a task that the roles of actors may read. They may read no others (`protocol §13.states`)."""
PAUSED = "paused"
"""The attribute of a trigger that an operator has paused."""
WEBHOOK_ATTRIBUTES = ("pk", "sk", EXPIRY, PAUSED)
"""The attributes that the function of webhooks may read. They tell nothing of a task but that it exists."""


def own_letters(actor: str) -> str:
    """The beginning of the keys of an actor's own notes."""
    return f"{LETTER_PREFIX}{actor}#"


def own_hops(actor: str) -> str:
    """The beginning of the keys of the marks of an actor's completed hops."""
    return f"{actor}#"


def own_starts(function: str) -> str:
    """The beginning of the keys of the marks of a function's own messages."""
    return f"{START_PREFIX}{function}#"
