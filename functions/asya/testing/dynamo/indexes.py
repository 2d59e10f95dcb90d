"""The tables of a mesh with their indexes, as the deployment creates them."""

from asya.testing.dynamo.queries import Index, Table

# The indexes of the tasks table: partition key, sort key, and further projected attributes.
TASK_INDEXES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "waiting": ("waits_in", "waits_since", ("actor",)),
    "listed": ("listed_in", "listed_at", ()),
    "children": ("child_of", "listed_at", ()),
    "due": ("due_in", "deadline_at", ()),
}
KINDS = ("tasks", "sink", "hops", "pending", "breaker", "fan-in")
_INDEXES = {
    "fan-in": {"open": Index("open_in", "due_at", ("actor",))},
    "tasks": {name: Index(partition, sort, included) for name, (partition, sort, included) in TASK_INDEXES.items()},
}


def new_table(kind: str) -> Table:
    """An empty table of one of `KINDS`."""
    return Table(_INDEXES.get(kind, {}))
