"""Standard output and standard error: closed, full, or without Unicode."""

from __future__ import annotations

import errno
import io
import os
import sys

_UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of a closed pipe and of a full disk."""


def open_streams() -> None:
    """Let each text be written: with escapes where the encoding lacks a character, and nowhere if a stream is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def end_output(error: OSError) -> str:
    """Write nothing more to standard output, which has failed, and return the problem.

    What it still holds is lost.

    Returns:
        The problem; empty if the reader of the output has closed it.

    Raises:
        OSError: The error is about something else.
    """
    if error.errno not in _UNWRITABLE or error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return "" if error.errno == errno.EPIPE else f"cannot write standard output: {os.strerror(error.errno)}"
