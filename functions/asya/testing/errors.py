"""The errors of the test kit."""


class TestKitError(Exception):
    """A test asked for what the mesh does not have or do; the message says what to do."""

    __test__ = False


class NotSucceededError(TestKitError, AssertionError):
    """The result of a run that has not succeeded; the message has the error and its traceback."""


class EndpointRefusedError(TestKitError):
    """Code of this process called AWS, or another endpoint that is none of the test kit's; the message says what to do."""


class RefusedError(TestKitError):
    """The gateway refused a call, such as a wrong answer to a pause."""
