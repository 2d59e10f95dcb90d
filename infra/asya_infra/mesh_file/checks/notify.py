"""Checks who is told about alarms: addresses, webhooks, and an existing topic."""

import re
from collections.abc import Iterator

from asya.gateway.manifest import REPORT_RETENTION_DAYS
from asya_infra import timings
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.notify_model import NotifySection
from asya_infra.mesh_file.units import format_duration

_PATTERNS = {
    "email": (re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"), "an e-mail address such as ops@example.com"),
    "https": (re.compile(r"https://[^/\s@]+(/\S*)?"), "a URL such as https://events.example.com/alarms"),
}
_TOPIC = re.compile(r"arn:[^:\s]+:sns:[^:\s]+:\d{12}:[A-Za-z0-9_-]{1,256}")
_LONGEST_DELAY = 900
_QUEUE_RETENTION = timings.QUEUE_RETENTION_DAYS * 86_400
_REPORTS_RETENTION = REPORT_RETENTION_DAYS * 86_400
# An alarm looks back a day at most, unless its periods are an hour or longer.
_ALARM_LIMIT = 86_400


def check(context: Context) -> Iterator[Finding]:
    """Check the receivers and the thresholds of alarms."""
    notify = context.mesh.notify
    yield from _receivers(notify)
    thresholds = notify.thresholds
    oldest, stopped = thresholds.oldest_message, thresholds.stopped_sweep
    if oldest is not None and not _LONGEST_DELAY < oldest < _QUEUE_RETENTION:
        yield (
            ("notify", "thresholds", "oldest_message"),
            "should be more than 15m, because retries and timers wait that long in queues, and less than 4d, their retention; "
            f"got {format_duration(oldest)}",
        )
    delayed = thresholds.delayed_reports
    if delayed is not None and delayed >= _REPORTS_RETENTION:
        yield (
            ("notify", "thresholds", "delayed_reports"),
            f"should be less than 14d, the retention of the queues of reports; got {format_duration(delayed)}",
        )
    if stopped is not None and not 600 <= stopped <= _ALARM_LIMIT:
        yield (
            ("notify", "thresholds", "stopped_sweep"),
            f"should be 10m to 1d, because some sweeps run every 5 minutes; got {format_duration(stopped)}",
        )


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
