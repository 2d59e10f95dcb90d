"""The error of a write to a table."""


class TableError(RuntimeError):
    """Rows cannot be written once, or would break the table; the message names the table and the cause."""
