"""What an error says about the outage that it comes from (`protocol §4.outage.named`)."""

from collections.abc import Callable, Sequence
from datetime import datetime

from asya.protocol.times import format_time

Outages = Callable[[datetime], str]
"""What an error says about the outages since a time: a sentence with what separates it from the text before, or nothing."""


def no_outages(_: datetime) -> str:
    """Say nothing."""
    return ""


def sentence(outages: Sequence[tuple[str, datetime, datetime, str]]) -> str:
    """The sentence about outages, with what separates it from the text before; empty without any.

    Args:
        outages: the service, the first and the last failed call, and the cause. A refusal begins with its HTTP status, 4xx.
    """
    parts = [
        f"{service} {'refused calls' if why.startswith('4') else 'did not answer'} "
        f"from {_time(since)} to {_time(until)} ({why})"
        for service, since, until, why in outages
    ]
    return f". Meanwhile {', and '.join(parts)}" if parts else ""


def present_sentence(outages: Sequence[tuple[str, datetime, str]]) -> str:
    """What a task says about outages that may keep it waiting; empty without any.

    Args:
        outages: the service, the first failed call, and the cause, as in `sentence`.
    """
    parts = [
        f"{service} has {'refused calls' if why.startswith('4') else 'not answered'} since {_time(since)} ({why})"
        for service, since, why in outages
    ]
    return f"{', and '.join(parts)}. A task that needs it goes on by itself when it answers" if parts else ""


def _time(moment: datetime) -> str:
    return format_time(moment.replace(microsecond=0))
