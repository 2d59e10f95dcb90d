"""The error of the commands `asya local`."""


class LocalCloudError(Exception):
    """A failure that the user can act on.

    Args:
        message: One or two sentences: the problem, its place and its remedy.
        detail: The end of a log or of a command's output, or empty.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
