"""The checks of `asya doctor` for triggers: buckets that send events, and event buses."""

from dataclasses import replace

import pytest

from asya_infra.preflight.account import Account, Unknown
from asya_infra.preflight.checks import check_triggers
from asya_infra.preflight.demand import Demand
from tests.unit.asya_infra.preflight.test_checks import ACCOUNT

DEMAND = Demand(namespace="shop", reserved={}, event_buckets=("partner-files",), event_buses=("shop",))
FITTING = replace(ACCOUNT, event_buckets={"partner-files": True}, event_buses=frozenset({"default", "shop"}))
DENIED = Unknown("AccessDenied", "service:Read")


def findings(account: Account) -> list[tuple[str, str]]:
    return [(each.level, each.message) for each in check_triggers(DEMAND, account)]


def test_a_bucket_that_sends_and_a_bus_are_fine() -> None:
    assert [level for level, _ in findings(FITTING)] == ["ok", "ok"]
    assert list(check_triggers(Demand(namespace="shop", reserved={}), ACCOUNT)) == []


@pytest.mark.parametrize(
    ("sends", "level", "told"),
    [
        (False, "problem", "aws s3api put-bucket-notification-configuration --bucket partner-files"),
        (None, "problem", "the bucket partner-files does not exist"),
        (DENIED, "warning", "allow service:Read"),
    ],
)
def test_a_bucket_that_sends_no_events_is_a_problem(sends: bool | Unknown | None, level: str, told: str) -> None:
    [found, _] = findings(replace(FITTING, event_buckets={"partner-files": sends}))
    assert found[0] == level
    assert told in found[1]


def test_a_bus_that_does_not_exist_is_a_problem() -> None:
    [_, found] = findings(replace(FITTING, event_buses=frozenset({"default"})))
    assert found[0] == "problem"
    assert "aws events create-event-bus --name shop" in found[1]
    [_, found] = findings(replace(FITTING, event_buses=DENIED))
    assert found[0] == "warning"
