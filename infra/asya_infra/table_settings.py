"""The tables of a mesh, as the stacks and `asya dev` create them. Each has the keys `pk` and `sk`."""

from dataclasses import dataclass

from asya.protocol.table_keys import CHILDREN_INDEX, DUE_INDEX, LISTED_INDEX, OPEN_INDEX, WAITING_INDEX


@dataclass(frozen=True)
class IndexSettings:
    """A sparse global secondary index.

    Attributes:
        partition, sort: the attributes that are its keys.
        included: the further attributes that it has.
    """

    name: str
    partition: str
    sort: str
    included: tuple[str, ...] = ()


TABLES: dict[str, tuple[IndexSettings, ...]] = {
    "tasks": (
        # Paused tasks and unfinished releases, for the sweep of pauses.
        IndexSettings(WAITING_INDEX, "waits_in", "waits_since", ("actor",)),
        IndexSettings(LISTED_INDEX, "listed_in", "listed_at"),
        IndexSettings(CHILDREN_INDEX, "child_of", "listed_at"),
        IndexSettings(DUE_INDEX, "due_in", "deadline_at"),
    ),
    "sink": (),
    # Open sets, for the sweep of sets.
    "fan-in": (IndexSettings(OPEN_INDEX, "open_in", "due_at", ("actor",)),),
    "pending": (),
    "hops": (),
    "breaker": (),
}
"""The indexes of each table by its kind."""
EXPIRY = "expires_at"
"""The attribute with the time to live."""
