"""Shortens the cold start of a function."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import without garbage collections: the objects of modules stay, so a collection walks through all of them for nothing.

    Later collections leave them out too. Outside of Lambda nothing changes: a process of somebody else has objects of its own.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
