"""The keys of `notify` in the mesh file: who is told about alarms, and when an alarm goes off."""

import re
from typing import Annotated, Any

from msgspec import Meta, Struct
from pydantic import BeforeValidator, WithJsonSchema

from asya.protocol.mesh_keys import Texts
from asya_infra.mesh_file.units import DURATION_SCHEMA, parse_duration

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,2})?)%")
_OFF = "none"


def _parse_percent(text: Any) -> float | None:
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None and text != _OFF:
        raise ValueError(f"should be a share such as 5%, or none for no alarm; got {text!r}")
    percent = float(match[1]) if match else None
    if percent is not None and not 0 < percent <= 100:
        raise ValueError(f"should be more than 0% and at most 100%; got {text}")
    return percent


def _parse_count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not is_count and value != _OFF:
        raise ValueError(f"should be a number of at least 1, or none for no alarm; got {value!r}")
    return value if is_count else None


def _parse_age(text: Any) -> float | None:
    if text == _OFF:
        return None
    seconds = parse_duration(text)
    if seconds < 60 or seconds % 60:
        raise ValueError(f"should be whole minutes such as 15m, or none for no alarm; got {text!r}")
    return seconds


_COUNT_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": _OFF}]}
_AGE_SCHEMA = {"anyOf": [DURATION_SCHEMA, {"const": _OFF}]}
_PERCENT_SCHEMA = {"anyOf": [{"type": "string", "pattern": f"^{_PERCENT.pattern}$"}, {"const": _OFF}]}

Percent = Annotated[float | None, BeforeValidator(_parse_percent), WithJsonSchema(_PERCENT_SCHEMA)]
Count = Annotated[int | None, BeforeValidator(_parse_count), WithJsonSchema(_COUNT_SCHEMA)]
Age = Annotated[float | None, BeforeValidator(_parse_age), WithJsonSchema(_AGE_SCHEMA)]


class ThresholdsSection(Struct, frozen=True, kw_only=True):
    """The values at which alarms go off; `none` removes an alarm. Counts are per five minutes."""

    failure_rate: Annotated[Percent, Meta(extra_json_schema={"default": "5%"})] = 5.0
    """The share of failed tasks; periods with fewer than 20 ended tasks do not count."""
    failures: Count = 1
    """Envelopes at x-sump."""
    oldest_message: Annotated[Age, Meta(extra_json_schema={"default": "30m"})] = 1800.0
    """The age of the oldest message in a queue."""
    delayed_reports: Annotated[Age, Meta(extra_json_schema={"default": "5m"})] = 300.0
    """The age of the oldest report that the gateway has not recorded."""
    deadline_missed: Count = 1
    """Deadlines that passed."""
    dead_letters: Count = 1
    """Messages in a dead-letter queue."""
    slots_missed: Count = 1
    """Slots of schedules that were later than `catch_up`, so their tasks do not start."""
    stuck_runs: Annotated[Age, Meta(extra_json_schema={"default": "1h"})] = 3600.0
    """How long a job run waits to run, or exceeds `max_run`."""
    oldest_pause: Annotated[Age, Meta(extra_json_schema={"default": "21d"})] = 21 * 86400.0
    """The age of the oldest pause; at most three quarters of the longest pause."""
    redelivered: Count = 20
    """Messages that were received before, after a crash, a timeout or an error of AWS."""
    throttles: Count = 10
    """Throttled calls of all Lambda functions in the account, which share its concurrency."""
    function_errors: Count = 3
    """Errors of the gateway's functions and of the sweeps."""
    stopped_sweep: Annotated[Age, Meta(extra_json_schema={"default": "15m"})] = 900.0
    """How long no sweep of a kind has finished."""


class NotifySection(Struct, frozen=True, kw_only=True):
    """Who is told about alarms."""

    email: Texts = ()
    """E-mail addresses; each must confirm its subscription."""
    https: Texts = ()
    """Webhooks (`https://`); each must confirm its subscription."""
    topic: str | None = None
    """The ARN of an existing SNS topic, instead of a topic of the mesh."""
    thresholds: ThresholdsSection = ThresholdsSection()
