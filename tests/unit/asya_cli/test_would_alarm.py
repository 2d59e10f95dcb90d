"""What the numbers of actors would raise, by the declarations of the alarms."""

import io

import pytest
from msgspec.structs import replace

from asya import registry
from asya.capabilities.operations.mesh_numbers import ActorNumbers
from asya.monitoring import Alarm
from asya_cli.output.console import Console
from asya_cli.would_alarm import raised, show_raised

QUIET = [
    ActorNumbers(name=name, kind=kind, waiting=0, in_flight=0, dead_letters=0)
    for name, kind in (("bill", "handler"), ("score", "spark"), ("x-sink", "crew"), ("x-sump", "crew"))
]
ONLY_CLOUDWATCH = {
    *("deadline-missed", "redelivered", "throttles", "function-errors", "{each}-stopped", "undelivered"),
    *("oldest-pause", "slots-missed", "stuck-runs"),
    *("x-ends-dead-letters", "x-ends-delayed", "x-reports-dead-letters", "x-reports-delayed"),
}
"""Alarms on what the numbers of actors do not have."""


def with_numbers(**changes: dict[str, float]) -> list[ActorNumbers]:
    return [replace(each, **changes.get(each.name.replace("-", "_"), {})) for each in QUIET]


LOUD = with_numbers(
    bill={"dead_letters": 3, "oldest_seconds": 40_000.0},
    x_sink={"per_minute": 40.0},
    x_sump={"per_minute": 4.0},
)


def judged() -> list[Alarm]:
    return [each for each in registry.PRODUCT.alarms if each.name in {found.alarm.name for found in raised(LOUD)}]


def test_a_quiet_mesh_raises_nothing() -> None:
    assert raised(QUIET) == []
    assert raised([]) == []


def test_each_alarm_that_numbers_show_is_judged_with_its_severity() -> None:
    assert {each.name for each in judged()} == {"dead-letters", "failure-rate", "oldest-message-{number}", "x-sump"}
    assert {each.name for each in registry.PRODUCT.alarms} - {each.name for each in judged()} == ONLY_CLOUDWATCH
    assert [each.alarm.severity for each in raised(LOUD)] == ["critical", "critical", "warning", "warning"]


@pytest.mark.parametrize("alarm", judged(), ids=lambda alarm: alarm.name)
def test_the_declared_threshold_decides(alarm: Alarm) -> None:
    limit = alarm.threshold.default
    for value, is_raised in ((limit - 0.5, False), (limit, True)):
        actors = {
            "dead-letters": with_numbers(bill={"dead_letters": int(value)}),
            "oldest-message-{number}": with_numbers(bill={"oldest_seconds": value}),
            "x-sump": with_numbers(x_sump={"per_minute": value / 5}),
            "failure-rate": with_numbers(x_sump={"per_minute": value}, x_sink={"per_minute": 100 - value}),
        }[alarm.name]
        assert (alarm.name in {each.alarm.name for each in raised(actors)}) is is_raised


def test_few_ends_are_no_rate() -> None:
    few = with_numbers(x_sump={"per_minute": 3.0}, x_sink={"per_minute": 0.0})
    assert [each.alarm.name for each in raised(few)] == ["x-sump"]


def test_a_line_says_what_happened_where_and_from_when_on() -> None:
    text = io.StringIO()
    show_raised(Console(file=text, width=200), with_numbers(bill={"dead_letters": 3, "oldest_seconds": 2_000.4}))
    assert text.getvalue().splitlines() == [
        "critical  A message has waited too long for one of bill. oldest-message: bill 2,000 s; from 1,800 s on",
        "warning   Messages could not be delivered: `asya dlq list` shows them. dead-letters: bill 3; from 1 on",
    ]
