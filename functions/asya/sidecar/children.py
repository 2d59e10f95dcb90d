"""Bounds the children that one hop gives (`protocol §1.max_children`)."""

from collections.abc import Iterable, Iterator

from asya.function.hop import Hop
from asya.protocol.errors import ErrorInfo
from asya.protocol.frame import Frame

REASON = "MaxChildren"


class TooManyChildrenError(ValueError):
    """A hop gives more children than the mesh allows.

    Args:
        actor: the actor of the hop.
        given: the children that it gave, as text.
        limit: `max_children` of the mesh.
        needed: a value of `max_children` that allows them, or at least more of them.
    """

    def __init__(self, actor: str, given: str, limit: int, needed: int) -> None:
        super().__init__(
            f"actor {actor!r} gave {given} in one hop; this mesh allows {limit}; "
            f"to allow more, write in the mesh file: max_children: {needed}"
        )

    @property
    def error(self) -> ErrorInfo:
        """The error that the hop fails with."""
        return ErrorInfo(type=REASON, message=str(self))


def bounded(hop: Hop, frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames of a hop, as they come.

    Raises:
        TooManyChildrenError: at the first frame beyond the limit. How many would follow, nobody knows.
    """
    limit = hop.mesh.max_children
    for index, frame in enumerate(frames):
        if index > limit:
            raise TooManyChildrenError(hop.actor, f"more than {limit} children", limit, 2 * limit)
        yield frame


def check_count(hop: Hop, frames: int) -> None:
    """Check the number of frames of a hop: frame 0 is no child.

    Raises:
        TooManyChildrenError: they are too many.
    """
    children, limit = frames - 1, hop.mesh.max_children
    if children > limit:
        raise TooManyChildrenError(hop.actor, f"{children} children", limit, children)
