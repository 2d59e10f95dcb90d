"""The number of generated inputs: 10,000 in full size, shared by the edges; a small part of them in `make test`."""

import os

from hypothesis import HealthCheck, settings

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))


def examples(small: int, full: int) -> settings:
    """The settings of a fuzz test.

    Args:
        small: the number of inputs in `make test`.
        full: the number of inputs with `ASYA_FULL_SIZE`.
    """
    return settings(max_examples=full if FULL else small, deadline=None, suppress_health_check=list(HealthCheck))
