"""The errors of the test kit, and what a test may have meant by a name that the mesh does not have."""

import difflib
from collections.abc import Iterable


class TestKitError(Exception):
    """A test asked for what the mesh does not have or do; the message says what to do."""

    __test__ = False


class NotSucceededError(TestKitError, AssertionError):
    """The result of a run that has not succeeded; the message has the error and its traceback."""


class EndpointRefusedError(TestKitError):
    """Code of this process called AWS, or another endpoint that is none of the test kit's; the message says what to do."""


class RefusedError(TestKitError):
    """The gateway refused a call, such as a wrong answer to a pause."""


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that is near, or those that there are."""
    own = sorted(each for each in known if not each.startswith("x-"))
    near = difflib.get_close_matches(name, own, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(own) or 'none'}"
