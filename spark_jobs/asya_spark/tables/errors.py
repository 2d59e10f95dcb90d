"""The error of an append."""


class AppendError(RuntimeError):
    """Rows cannot be appended once; the message names the table and the cause."""
