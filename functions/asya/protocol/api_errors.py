"""A request that is refused, in the words the caller gets (`protocol §13`, errors)."""


class ApiError(Exception):
    """Why a request is refused.

    Attributes:
        status: the HTTP status to answer with.
        code: a word for programs, which never changes.
        message: a sentence for people.
        field: the field, header or parameter at fault, if one is.
        retry_after: seconds after which the same request may work, if time is all it takes.
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
