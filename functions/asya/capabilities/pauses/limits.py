"""How long a mesh can hold an envelope (`protocol §11`)."""

from datetime import timedelta

from asya.protocol.mesh_table import Retention

# A wait or a pause ends this long before its record expires, or a tenth of the record's life if that is less.
_MARGIN = timedelta(days=1)


def longest_wait(retention: Retention) -> timedelta:
    """How long an envelope may be held: it leaves before its record or its stored object expires."""
    life = timedelta(seconds=min(retention.tasks, retention.payloads))
    return life - min(_MARGIN, life / 10)
