"""Checks what the triggers of a mesh need outside of it: buckets that send events to EventBridge, and event buses. Pure."""

from collections.abc import Iterator

from asya_infra.preflight.account import Account, Unknown
from asya_infra.preflight.demand import Demand
from asya_infra.preflight.finding import Finding

_SUBJECT = "triggers"
_TURN_ON = '{"EventBridgeConfiguration": {}}'


def check_triggers(demand: Demand, account: Account) -> Iterator[Finding]:
    """Yield a finding for each bucket and each bus that triggers need; nothing without any."""
    for bucket in demand.event_buckets:
        yield _bucket(bucket, account.event_buckets.get(bucket))
    for bus in demand.event_buses:
        yield _bus(bus, account)


def _bucket(bucket: str, sends: bool | Unknown | None) -> Finding:
    match sends:
        case Unknown():
            return Finding(
                "warning",
                _SUBJECT,
                f"cannot read whether the bucket {bucket} sends events to EventBridge ({sends.reason}); allow {sends.action} to "
                "check it",
            )
        case None:
            return Finding(
                "problem",
                _SUBJECT,
                f"the bucket {bucket} does not exist. Correct the `s3` of its trigger, or create the bucket",
            )
        case False:
            return Finding(
                "problem",
                _SUBJECT,
                f"the bucket {bucket} sends no events to EventBridge, so its triggers would start nothing. Its owner turns them on "
                f"in the console (Properties, Amazon EventBridge), or with `aws s3api put-bucket-notification-configuration "
                f"--bucket {bucket} --notification-configuration '{_TURN_ON}'`, which replaces the notifications that it has: add "
                "them to the JSON",
            )
        case _:
            return Finding("ok", _SUBJECT, f"the bucket {bucket} sends events to EventBridge")


def _bus(bus: str, account: Account) -> Finding:
    buses = account.event_buses
    if isinstance(buses, Unknown):
        return Finding(
            "warning", _SUBJECT, f"cannot read the event buses ({buses.reason}); allow {buses.action} to check {bus}"
        )
    if bus not in buses:
        return Finding(
            "problem",
            _SUBJECT,
            f"the event bus {bus} does not exist. Correct the `event.bus` of its trigger, or run `aws events create-event-bus "
            f"--name {bus}`",
        )
    return Finding("ok", _SUBJECT, f"the event bus {bus} exists")
