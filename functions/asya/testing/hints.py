"""What a test may have meant by a name that the mesh does not have."""

import difflib
from collections.abc import Iterable


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that is near, or those that there are."""
    own = sorted(each for each in known if not each.startswith("x-"))
    near = difflib.get_close_matches(name, own, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(own) or 'none'}"
