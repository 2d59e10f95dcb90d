"""Ignoring Ctrl-C while a cloud is cleaned up."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def sigint_ignored() -> Iterator[None]:
    """Leave Ctrl-C aside for as long as this lasts: a second one must not stop the cleaning up half-way."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread: no Ctrl-C comes here
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
