"""What goes wrong while a local cloud is brought up, told to a person."""


class LocalCloudError(Exception):
    """Something a person has to act on: what was wrong, where, and what to do.

    Parameters
    ----------
    message:
        One or two sentences.
    detail:
        Longer material that helps (the tail of a log, a command's output), or empty.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
