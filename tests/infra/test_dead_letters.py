"""The triggers of the DLQ function: the alarms of dead-letter queues, and a schedule."""

import json
import re
from typing import Any

import pytest

from tests.paths import PROJECT

# An event of CloudWatch's own shape.
RECORDED = json.loads((PROJECT / "events" / "lambda" / "dead-letters-alarm.json").read_text())


def matches(pattern: Any, event: Any) -> bool:
    """Match an event against an EventBridge pattern of values and wildcards."""
    if isinstance(pattern, dict):
        return isinstance(event, dict) and all(key in event and matches(pattern[key], event[key]) for key in pattern)
    return any(event == each if isinstance(each, str) else wildcard_fits(each["wildcard"], event) for each in pattern)


def wildcard_fits(wildcard: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wildcard.split("*"))), text) is not None


def alarm(name: str, state: str) -> Any:
    detail = RECORDED["detail"] | {"alarmName": name, "state": RECORDED["detail"]["state"] | {"value": state}}
    return RECORDED | {"detail": detail}


@pytest.mark.parametrize("actor", ["intake", "crunch", "x-sink", "x-completion"])
def test_the_alarm_of_every_dead_letter_queue_invokes_it(shop: Any, actor: str) -> None:
    names = {each["AlarmName"] for each in shop.resources("AWS::CloudWatch::Alarm")}
    rule = shop.one("AWS::Events::Rule", Name="asya-shop-dlq-alarm")
    assert f"asya-shop-{actor}-dlq" in names
    assert matches(rule["EventPattern"], alarm(f"asya-shop-{actor}-dlq", "ALARM"))


@pytest.mark.parametrize(
    ("name", "state"), [("asya-shop-intake-dlq", "OK"), ("asya-shop-x-sump", "ALARM"), ("asya-bank-a-dlq", "ALARM")]
)
def test_no_other_event_invokes_it(shop: Any, name: str, state: str) -> None:
    rule = shop.one("AWS::Events::Rule", Name="asya-shop-dlq-alarm")
    assert not matches(rule["EventPattern"], alarm(name, state))


@pytest.mark.rule("11.dlq.soon")
def test_a_schedule_invokes_it_because_an_alarm_fires_only_once(shop: Any) -> None:
    assert shop.one("AWS::Events::Rule", Name="asya-shop-dlq-sweep")["ScheduleExpression"] == "rate(1 minute)"


def test_both_rules_may_invoke_it(shop: Any, plain: Any) -> None:
    for mesh in (shop, plain):
        rules = [each for each in mesh.resources("AWS::Events::Rule") if "-dlq-" in each["Name"]]
        for rule in rules:
            assert [target["Arn"].startswith("<DeadLetterWatch") for target in rule["Targets"]] == [True]
        allowed = [
            each for each in mesh.resources("AWS::Lambda::Permission") if "DeadLetterWatch" in str(each["SourceArn"])
        ]
        assert [each["Principal"] for each in allowed] == ["events.amazonaws.com"] * 2


def test_it_has_no_event_source(shop: Any) -> None:
    feeds = shop.resources("AWS::Lambda::EventSourceMapping")
    assert not any("dlq" in each["EventSourceArn"] for each in feeds)
