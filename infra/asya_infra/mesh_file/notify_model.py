"""The keys of `notify` in the mesh file: who is told about alarms, and when an alarm goes off."""

import re
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, defstruct
from pydantic import BeforeValidator, WithJsonSchema

from asya import registry
from asya.monitoring import Threshold
from asya.protocol.mesh_keys import Texts
from asya_infra.mesh_file.forms import DURATION_SCHEMA, format_duration, parse_duration

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


_FORMS: dict[str, tuple[Any, str]] = {"count": (Count, "{:g}"), "percent": (Percent, "{:g}%"), "age": (Age, "")}


def written(threshold: Threshold, value: float) -> str:
    """Return the value of a threshold as the mesh file has it, such as `5%` or `30m`."""
    text = _FORMS[threshold.form][1]
    return text.format(value) if text else format_duration(value)


def threshold_field(threshold: Threshold) -> tuple[str, Any, float | None]:
    """Return the key of a threshold with its type and its default."""
    default = int(threshold.default) if threshold.form == "count" else float(threshold.default)
    shown = default if threshold.form == "count" else written(threshold, default)
    described = Meta(description=threshold.text, extra_json_schema={"default": shown})
    return threshold.key, Annotated[_FORMS[threshold.form][0], described], default


if TYPE_CHECKING:

    class ThresholdsSection(Struct):
        """The keys of the declared thresholds."""

else:
    ThresholdsSection = defstruct(
        "ThresholdsSection",
        [threshold_field(each) for _, each in sorted(registry.PRODUCT.thresholds.items())],
        namespace={
            "__doc__": "The values at which alarms go off; `none` removes an alarm. Counts are per five minutes."
        },
        module=__name__,
        frozen=True,
        kw_only=True,
    )


def value_of(thresholds: ThresholdsSection, threshold: Threshold) -> float | None:
    """Return the value of a threshold; None if the mesh file removes its alarms."""
    value: float | None = getattr(thresholds, threshold.key, threshold.default)
    return value


class ReceiversSection(Struct, frozen=True, kw_only=True):
    """Who is told."""

    email: Texts = ()
    """E-mail addresses; each must confirm its subscription."""
    https: Texts = ()
    """Webhooks (`https://`); each must confirm its subscription."""
    topic: str | None = None
    """The ARN of an existing SNS topic, instead of a topic of the mesh."""

    @property
    def is_somebody(self) -> bool:
        """Whether there is a receiver."""
        return bool(self.email or self.https or self.topic)


class NotifySection(ReceiversSection, frozen=True, kw_only=True):
    """Who is told about alarms. A mesh that tells nobody has none."""

    critical: ReceiversSection = ReceiversSection()
    """Who else is told about critical alarms, such as a pager. The others are told about every alarm."""
    thresholds: ThresholdsSection = ThresholdsSection()

    @property
    def tells_somebody(self) -> bool:
        """Whether the mesh has alarms."""
        return self.is_somebody or self.critical.is_somebody
