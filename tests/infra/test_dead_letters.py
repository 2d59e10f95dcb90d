"""The trigger of the DLQ function: a schedule."""

from typing import Any

import pytest


@pytest.mark.rule("11.dlq.soon")
def test_a_schedule_invokes_it_every_minute(shop: Any, plain: Any) -> None:
    for mesh, namespace in ((shop, "shop"), (plain, "plain-test")):
        rule = mesh.one("AWS::Events::Rule", Name=f"asya-{namespace}-dlq-sweep")
        assert rule["ScheduleExpression"] == "rate(1 minute)"
        assert [target["Arn"].startswith("<DeadLetterWatch") for target in rule["Targets"]] == [True]
        (allowed,) = [
            each for each in mesh.resources("AWS::Lambda::Permission") if "DeadLetterWatch" in str(each["SourceArn"])
        ]
        assert allowed["Principal"] == "events.amazonaws.com"


def test_it_has_no_event_source(shop: Any) -> None:
    feeds = shop.resources("AWS::Lambda::EventSourceMapping")
    assert not any("dlq" in each["EventSourceArn"] for each in feeds)
