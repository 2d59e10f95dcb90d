"""Checks who is told about alarms: addresses, webhooks, and an existing topic."""

import re
from collections.abc import Iterator

from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.notify_model import NotifySection, value_of, written

_PATTERNS = {
    "email": (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "an e-mail address such as ops@example.com"),
    "https": (re.compile(r"https://[^/\s@]+(/\S*)?"), "a URL such as https://events.example.com/alarms"),
}
_TOPIC = re.compile(r"arn:[^:\s]+:sns:[^:\s]+:\d{12}:[A-Za-z0-9_-]{1,256}")


def check_notify(context: Context) -> Iterator[Finding]:
    """Check the receivers and the thresholds of alarms."""
    notify = context.mesh.notify
    yield from _receivers(notify)
    for threshold in context.registry.thresholds.values():
        value = value_of(notify.thresholds, threshold)
        if value is not None and not threshold.least <= value <= threshold.most:
            got = written(threshold, value)
            yield ("notify", "thresholds", threshold.key), f"should be {threshold.bounds}; got {got}"


def _receivers(notify: NotifySection) -> Iterator[Finding]:
    for key, (pattern, expected) in _PATTERNS.items():
        addresses: tuple[str, ...] = getattr(notify, key)
        for index, address in enumerate(addresses):
            if not pattern.fullmatch(address):
                yield ("notify", key, index), f"should be {expected}; got {address!r}"
            elif address in addresses[:index]:
                yield ("notify", key, index), f"{address!r} is there twice; remove one of them"
    if notify.topic is None:
        return
    if not _TOPIC.fullmatch(notify.topic):
        expected = "the ARN of a standard SNS topic such as arn:aws:sns:eu-central-1:111122223333:alarms"
        yield ("notify", "topic"), f"should be {expected}; got {notify.topic!r}"
    if notify.email or notify.https:
        yield ("notify", "topic"), "excludes email and https: subscribe them to the topic, or remove the topic"
