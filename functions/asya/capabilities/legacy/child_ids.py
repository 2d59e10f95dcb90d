"""The legacy ids of children, `{id}-{index}` (`protocol §14`, `child_ids: suffix`).

The numbered ids of an id go to whoever claims them first: one hop that fans out, or the senders outside, who may choose such ids.
"""

import re

from asya.capabilities.legacy.options import numbers_children
from asya.protocol.envelope import Envelope
from asya.protocol.ids import is_usable
from asya.protocol.mesh_table import MeshTable

SENDERS = "senders"
"""Who has the numbered ids of an id after a sender outside has chosen one of them."""
_NUMBERED = re.compile(r"(.+)-[1-9][0-9]*", re.DOTALL | re.ASCII)


def has_numbered_ids(mesh: MeshTable) -> bool:
    """Return whether an actor of the mesh numbers its children."""
    return any(map(numbers_children, mesh.actors.values()))


def numbered_id(parent_id: str, index: int) -> str | None:
    """Return the numbered id of a child; None if it is too long for an id."""
    child = f"{parent_id}-{index}"
    return child if is_usable(child) else None


def numbered_of(envelope_id: str) -> str | None:
    """Return the id whose child could have this id; None if it is no numbered id."""
    found = _NUMBERED.fullmatch(envelope_id)
    return found[1] if found else None


def hop_claimant(envelope: Envelope) -> str:
    """Return who has the numbered ids of an envelope after this hop of it has fanned out."""
    return f"{envelope.generation}/{envelope.route.position}"
