"""The error that refuses a gateway request (`protocol §13`, errors)."""


class ApiError(Exception):
    """Refuses a request.

    Attributes:
        status: the HTTP status of the answer.
        code: the stable name of the error, for programs.
        message: a sentence for the caller.
        field: the field, header or parameter at fault; None if the whole request is.
        retry_after: seconds after which the same request may succeed; None if a retry does not help.
    """

    def __init__(
        self, status: int, code: str, message: str, field: str | None = None, *, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.retry_after = retry_after
