"""What a server of the tests logs about its own faults, such as an answer that is no valid HTTP."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Faults(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def no_server_faults() -> Iterator[None]:
    """Fail if uvicorn logs a fault within the block. A server that is made within it would remove what listens."""
    logger, faults = logging.getLogger("uvicorn"), _Faults()
    logger.addHandler(faults)
    try:
        yield
    finally:
        logger.removeHandler(faults)
    assert faults.texts == []
